"""Who calls whom, and where parameters and local variables of each function lie.

A function's frame is local memory: its results and parameters first, then its own variables, then the results and
parameters of whatever it calls, laid out as the callee's frame begins. A callee's frame therefore starts where its
caller's variables end, and passing parameters copies nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxemu.ptx.errors import NotEmulatable
from ptxemu.ptx.tree import Declared, Function, Group, Program, Statement

SYSTEM_FUNCTIONS = frozenset(["vprintf", "__assertfail", "malloc", "free"])
FRAME_ALIGN = 16
RECURSION_BYTES = 16384
"""Stack of a thread whose depth of calls is not known: sixteen times CUDA's default limit."""
CODE_WINDOW = 4 << 56
"""Addresses of functions begin here; function k of the module is at `CODE_WINDOW + 256 * (k + 1)`."""


def aligned(offset: int, align: int) -> int:
    """The next multiple of `align`."""
    return -(-offset // align) * align


@dataclass(frozen=True)
class Call:
    """The parts of a `call` statement; `target` is a function's name, or a register of an indirect call."""

    target: str
    indirect: bool
    results: tuple[str, ...]
    arguments: tuple[str, ...]

    @classmethod
    def of(cls, statement: Statement) -> Call:
        """Raises NotEmulatable for a form that nvcc does not write."""
        operands = statement.operands
        results = operands[0].items if operands and isinstance(operands[0], Group) else ()
        rest = operands[1:] if results or (operands and isinstance(operands[0], Group)) else operands
        names = [one for one in rest if isinstance(one, str)]
        groups = [one for one in rest if isinstance(one, Group)]
        arguments = groups[0].items if groups else ()
        actual = (*results, *arguments)
        if not 1 <= len(names) <= 2 or len(groups) > 1 or not all(isinstance(one, str) for one in actual):
            raise NotEmulatable(statement.text, statement.line, "a call of this form")
        return cls(names[0], len(names) == 2, results, arguments)  # type: ignore[arg-type]


def sequence(variables: list[Declared]) -> tuple[list[int], int]:
    """Offsets of variables one after the other, and where they end."""
    offsets, end = [], 0
    for one in variables:
        end = aligned(end, max(one.align, 1))
        offsets.append(end)
        end += one.size
    return offsets, end


@dataclass
class Frame:
    """Offsets of a function's variables from the start of its frame, and where a callee's frame starts."""

    offsets: dict[str, int] = field(default_factory=dict)
    size: int = 0

    @classmethod
    def of(cls, function: Function) -> Frame:
        """Raises NotEmulatable when one variable is passed in two calls at different places."""
        frame = cls()
        formal = [] if function.is_kernel else [*function.results, *function.parameters]
        offsets, end = sequence(formal)
        frame.offsets.update(zip((one.name for one in formal), offsets, strict=True))
        passed = _passed(function)
        for one in function.variables:
            if one.space in (".local", ".param") and one.name not in passed:
                end = aligned(end, max(one.align, 1))
                frame.offsets[one.name] = end
                end += one.size
        # Never empty, so that recursion without an end runs into the end of the stack.
        frame.size = aligned(max(end, 0 if function.is_kernel else 1), FRAME_ALIGN)
        frame.offsets.update({name: frame.size + offset for name, offset in passed.items()})
        return frame


def _passed(function: Function) -> dict[str, int]:
    """Variables that calls pass, with their offsets in the callee's frame."""
    declared = {one.name: one for one in function.variables if one.space == ".param"}
    found: dict[str, int] = {}
    for statement in calls_of(function):
        call = Call.of(statement)
        if call.target in SYSTEM_FUNCTIONS:
            continue
        actual = [*call.results, *call.arguments]
        if any(one not in declared for one in actual):
            raise NotEmulatable(statement.text, statement.line, "an argument that is no variable")
        offsets, _ = sequence([declared[one] for one in actual])
        for name, offset in zip(actual, offsets, strict=True):
            if found.setdefault(name, offset) != offset:
                raise NotEmulatable(statement.text, statement.line, f"variable {name} in two calls")
    return found


def calls_of(function: Function) -> list[Statement]:
    """The `call` statements of a body."""
    return [one for one in function.body if isinstance(one, Statement) and one.parts[0] == "call"]


class CallGraph:
    """The calls of a module. Functions whose address is taken may be reached by any indirect call."""

    def __init__(self, program: Program) -> None:
        self.functions = {one.name: one for one in program.functions if one.defined and not one.is_kernel}
        self.addresses = {
            one.name: CODE_WINDOW + 256 * (k + 1) for k, one in enumerate(program.functions) if not one.is_kernel
        }
        self.taken = self._taken(program)
        self._frames: dict[str, Frame] = {}

    def _taken(self, program: Program) -> list[str]:
        named = {element.partition("+")[0] for one in program.variables for element in one.initial}
        for function in program.functions:
            for one in function.body:
                if isinstance(one, Statement) and one.parts[0] != "call":
                    named.update(operand for operand in one.operands if isinstance(operand, str))
        return [name for name in self.functions if name in named]

    def frame(self, function: Function) -> Frame:
        """The function's frame."""
        if function.name not in self._frames:
            self._frames[function.name] = Frame.of(function)
        return self._frames[function.name]

    def callees(self, function: Function) -> list[str]:
        """Functions with a body here that it may call."""
        found: dict[str, None] = {}
        for statement in calls_of(function):
            call = Call.of(statement)
            found.update(dict.fromkeys(self.taken if call.indirect else [call.target]))
        return [name for name in found if name in self.functions]

    def order(self, kernel: Function) -> list[Function]:
        """All functions that the kernel reaches, callees before their callers as far as recursion allows."""
        found: dict[str, Function] = {}
        seen = {kernel.name}
        pending = [(kernel, iter(self.callees(kernel)))]
        while pending:
            function, rest = pending[-1]
            name = next((one for one in rest if one not in seen), None)
            if name is None:
                pending.pop()
                found[function.name] = function
            else:
                seen.add(name)
                pending.append((self.functions[name], iter(self.callees(self.functions[name]))))
        del found[kernel.name]
        return list(found.values())

    def recursive(self, order: list[Function]) -> frozenset[str]:
        """Those of the functions that may be active twice: the ones that lie on a cycle of calls."""
        position = {one.name: k for k, one in enumerate(order)}
        loops = frozenset(
            one.name for one in order for name in self.callees(one) if position[name] >= position[one.name]
        )
        # Anything between the ends of a loop in this order may lie on it; saving too much is only slow.
        return frozenset(position) if loops else loops

    def stack_bytes(self, kernel: Function, order: list[Function]) -> int:
        """Local memory of one thread: the deepest chain of frames, or a fixed size where recursion has no bound."""
        if self.recursive(order):
            return self.frame(kernel).size + RECURSION_BYTES
        deepest: dict[str, int] = {}
        for function in [*order, kernel]:
            below = max((deepest[name] for name in self.callees(function)), default=0)
            deepest[function.name] = self._extent(function) if not below else self.frame(function).size + below
        return deepest[kernel.name]

    def _extent(self, function: Function) -> int:
        frame = self.frame(function)
        ends = [offset + one.size for one in function.variables if (offset := frame.offsets.get(one.name)) is not None]
        return max([frame.size, *ends])
