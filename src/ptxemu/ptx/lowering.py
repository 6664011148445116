"""From parsed functions to operations of the core: registers, constants, symbols and calls.

Registers become places of the kernel's register file, immediates too (see `registers`).

Calls. Every device function that a kernel may reach is lowered once, before the kernel and after what it calls, with
registers of its own. Its variables are addressed from a register that holds where its frame begins (see `calls`).

What each instruction becomes is decided in `selection/`; `FunctionLowering` is what it builds with.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxemu.ptx import module as out
from ptxemu.ptx.analysis.contractions import Contraction, contractions
from ptxemu.ptx.analysis.merges import merged_loads
from ptxemu.ptx.analysis.reach import written_places
from ptxemu.ptx.analysis.steering import steering_loads
from ptxemu.ptx.analysis.waits import waits
from ptxemu.ptx.calls import aligned
from ptxemu.ptx.context import SPECIALS, ModuleContext
from ptxemu.ptx.errors import NotEmulatable
from ptxemu.ptx.limits import check_sizes
from ptxemu.ptx.operations import PREDICATE, signatures, width_of
from ptxemu.ptx.registers import RegisterFile
from ptxemu.ptx.tree import TYPE_BYTES, Address, Declared, Function, Label, Operand, Statement, literal

SHARED_WINDOW, LOCAL_WINDOW, PARAM_WINDOW = (k << 56 for k in (1, 2, 3))


def halves(name: str) -> tuple[str, str]:
    """The registers of 64 bits that a register of 128 bits is made of, the low half first."""
    return f"{name}%low", f"{name}%high"


LowerStatement = Callable[["FunctionLowering", Statement], None]
"""Appends the operations of one instruction."""


class FunctionLowering:
    """Lowers one kernel with all that it calls. Names of a callee stand under the prefix `NAME/`."""

    def __init__(self, context: ModuleContext, function: Function, lower_statement: LowerStatement) -> None:
        self.context = context
        self.lower_statement = lower_statement
        self.function = function
        self.current = function
        self.statement = Statement(("entry",), [], function.line, ())
        limits = (function.required_block, function.max_threads, function.required_cluster)
        self.kernel = out.Kernel(function.name, [], 0, *limits)
        self.registers = RegisterFile()
        self.symbols: dict[str, tuple[str, int]] = {}
        self.branch_targets: dict[str, tuple[str, ...]] = {}
        self.positions: dict[str, int] = {}
        self.prefix = ""
        self.reachable = context.calls.order(function)
        self.recursive = context.calls.recursive(self.reachable)
        self.call_targets: list[tuple[int, str]] = []
        self.merged: int | None = None
        self.steers = False
        self.contraction: Contraction | None = None
        self.dynamic_symbols: list[str] = []
        self.dynamic_align = 1

    # -- errors
    def unsupported(self, reason: str = "the emulator has no such operation") -> NotEmulatable:
        """The error for the statement being lowered."""
        return NotEmulatable(self.statement.text, self.statement.line, reason)

    # -- layout
    def place_parameters(self) -> None:
        """Kernel parameters, laid out as the host passes them."""
        offset = 0
        for one in self.function.parameters:
            offset = aligned(offset, one.align)
            self.kernel.parameters.append((offset, one.size))
            self.symbols[one.name] = ("param", offset)
            offset += one.size
        self.kernel.parameter_bytes = offset

    def declare(self, one: Declared, offset: int | None) -> None:
        """A variable of the function body, at its offset in the frame when it is a thread's own."""
        name = self.prefix + one.name
        if offset is not None:
            self.symbols[name] = ("frame" if self.prefix else "local", offset)
        elif one.space == ".shared":
            self.declare_shared(name, one)
        else:
            raise NotEmulatable(one.name, self.statement.line, f"variable in space {one.space} inside a function")

    def declare_shared(self, name: str, one: Declared) -> None:
        """Static shared memory is packed; unsized arrays begin where it ends, at a multiple of their alignment."""
        if one.unsized:
            self.symbols[name] = ("shared", 0)
            self.dynamic_symbols.append(name)
            self.dynamic_align = max(self.dynamic_align, one.align)
            return
        offset = aligned(self.kernel.static_shared, one.align)
        self.symbols[name] = ("shared", offset)
        self.kernel.static_shared = offset + one.size

    # -- operands
    def is_register(self, name: Operand) -> bool:
        """Whether the name is a register of the function."""
        return isinstance(name, str) and self.prefix + name in self.registers.widths

    def width(self, name: str) -> int:
        """Width of a register."""
        return self.registers.widths[self.prefix + name]

    def declare_register(self, name: str, width: int) -> None:
        """A register of the function under the current prefix; it takes a place when it is first used."""
        self.registers.widths[self.prefix + name] = width

    def register(self, name: str, width: int | None = None) -> int:
        """Offset of a named register, which must have the width when one is given."""
        if not self.is_register(name):
            raise self.unsupported(f"unknown operand {name}")
        offset, actual = self.registers.named(self.prefix + name)
        if width is not None and actual != width:
            raise self.unsupported(f"operand {name} has {actual} bits where {width} are expected")
        return offset

    def temporary(self, width: int) -> str:
        """A register that no PTX names."""
        return self.registers.temporary(self.prefix, width)

    def constant(self, value: int, width: int) -> int:
        """A register that holds a constant."""
        return self.registers.constant(value, width)

    def read(self, operand: Operand, width: int) -> int:
        """Offset of a source operand: register, special register, literal, symbol or negated predicate."""
        if isinstance(operand, Address):
            return self.symbol_constant(operand.base, operand.offset, width)
        if not isinstance(operand, str):
            raise self.unsupported("a vector stands where one value is expected")
        if self.is_register(operand):
            return self.register(operand, width)
        if operand.startswith("!"):
            name = self.temporary(PREDICATE)
            self.emit("not_pred", [self.register(name), self.register(operand[1:], PREDICATE)], "alu", guarded=False)
            return self.register(name)
        if operand == "_":
            return self.register(self.temporary(width))
        value = literal(operand)
        if value is not None:
            return self.constant(-(value != 0), 32) if width == PREDICATE else self.constant(value, width)
        if operand[0] == "%":
            return self.special(operand[1:], width)
        return self.symbol_constant(operand, 0, width)

    def special(self, name: str, width: int) -> int:
        """A register filled from the thread's place in the grid: of 32 bits, from which other widths are made."""
        if name not in SPECIALS:
            raise self.unsupported(f"special register %{name}")
        found = self.registers.special(name)
        if width in (16, 64):
            place = self.register(self.temporary(width))
            operation = "cvt_b16_b32" if width == 16 else "cvt_b64_u32"
            self.emit(operation, [place, found], "mov", guarded=False)
            return place
        return found

    def find_symbol(self, name: str) -> tuple[str, int] | None:
        """Space and offset (or variable index) of a symbol, shared ones being placed at their first use."""
        if self.prefix + name in self.symbols:
            return self.symbols[self.prefix + name]
        if name in self.symbols:
            return self.symbols[name]
        if name in self.context.globals:
            return ("global", self.context.globals[name])
        if name in self.context.calls.addresses:
            return ("code", self.context.calls.addresses[name])
        if name in self.context.shared:
            self.declare_shared(name, self.context.shared[name])
            return self.symbols[name]
        return None

    def symbol_constant(self, name: str, addend: int, width: int) -> int:
        """A register that holds a symbol's address within its space."""
        found = self.find_symbol(name)
        if found is None:
            raise self.unsupported(f"unknown operand {name}")
        space, value = found
        if space == "global":
            return self.constant(value << 32 | addend & 0xFFFFFFFF, out.ADDRESS_WIDTH)
        if space == "frame":
            place = self.register(self.temporary(64))
            self.emit("add_b64", [place, self.frame_register(), self.constant(value + addend, 64)], "int")
            return place
        if name in self.dynamic_symbols or self.prefix + name in self.dynamic_symbols:
            return self.registers.dynamic_constant(addend, width)  # known when all static memory is placed
        return self.constant(value + addend, width)

    def destination(self, operand: Operand, width: int) -> int:
        """Offset of a register that is written."""
        if operand == "_":
            return self.register(self.temporary(width))
        if not isinstance(operand, str):
            raise self.unsupported("a vector stands where one register is expected")
        return self.register(operand, width)

    # -- emission
    def emit(
        self,
        operation: str,
        operands: list[int],
        kind: str,
        *,
        guarded: bool = True,
        flags: int = 0,
        immediate: int = 0,
        memory: int = 0,
        extra: int = 0,
    ) -> out.Instruction:
        """Append an instruction with the statement's guard; immediates wrap at 64 bits, as addresses do."""
        guard = 0
        statement = self.statement
        if guarded and statement.guard is not None:
            flags |= out.GUARDED | (out.GUARD_NEGATED if statement.negated else 0)
            guard = self.register(statement.guard, PREDICATE)
        immediate = (immediate + (1 << 63)) % (1 << 64) - (1 << 63)
        source = self.context.source(statement.source)
        made = out.Instruction(
            operation, kind, tuple(operands), statement.line, source, flags, guard, immediate, memory, extra
        )
        self.kernel.code.append(made)
        return made

    def emit_lane(
        self,
        operation: str,
        destination: Operand,
        sources: list[Operand],
        kind: str,
        *,
        immediate: int = 0,
        extra: int = 0,
    ) -> out.Instruction:
        """A per-lane operation by name; operands are checked against its signature."""
        signature = signatures().get(operation)
        if signature is None:
            raise self.unsupported()
        if len(sources) != len(signature) - 1:
            raise self.unsupported(f"{len(sources)} sources where {operation} takes {len(signature) - 1}")
        read = [self.read(source, width) for source, width in zip(sources, signature[1:], strict=True)]
        operands = [self.destination(destination, signature[0]), *read]
        return self.emit(operation, operands, kind, immediate=immediate, extra=extra)

    def memory(self, space: str, op: str, size: int) -> int:
        """A new entry of the memory table; loads that ptxas merges into another are set apart."""
        if self.merged is not None:
            op, size = (op, self.merged) if self.merged else (f"merged_{op}", size)
        source = self.context.source(self.statement.source)
        made = out.MemoryOperation(space, op, size, self.statement.line, source, self.steers)
        self.kernel.memory.append(made)
        return len(self.kernel.memory) - 1

    def branch(self, label: str, *, guard: str | None = None) -> None:
        """A jump, under the statement's guard or the one given."""
        made = self.emit("bra", [], "branch", guarded=guard is None)
        if guard is not None:
            made.flags, made.guard = out.GUARDED, self.register(guard, PREDICATE)
        made.target = self.prefix + label

    # -- bodies
    def lower(self) -> out.Kernel:
        """The whole kernel."""
        self.place_parameters()
        for callee in self.reachable:
            self.lower_callee(callee)
        self.prefix = ""
        self.kernel.entry = len(self.kernel.code)
        if self.reachable:
            self.statement = Statement(("entry",), [], self.function.line, ())
            self.emit("mov_b64", [self.frame_register(), self.constant(0, 64)], "mov")
        self.lower_body(self.function)
        self.note_reach()
        self.statement = Statement(("exit",), [], self.statement.line, ())
        self.emit("exit", [], "branch")
        self.kernel.local_bytes = self.context.calls.stack_bytes(self.function, self.reachable)
        self.finish()
        return self.kernel

    def note_reach(self) -> None:
        """Where the kernel may write; what it calls may write anywhere."""
        found, reach = written_places(self.function.body), self.kernel.reach
        reach.anywhere = found.anywhere or bool(self.reachable)
        placed = {name: offset for name, (space, offset) in self.symbols.items() if space == "param"}
        reach.parameters = sorted(placed[name] + offset for name, offset in found.parameters if name in placed)
        variables = self.context.globals
        reach.variables = sorted(variables[name] for name in found.symbols if name in variables)

    def lower_callee(self, function: Function) -> None:
        """A device function under a prefix of its own; remembers which registers are its."""
        self.prefix = f"{function.name}/"
        self.positions[f"function {function.name}"] = len(self.kernel.code)
        self.lower_body(function)
        self.statement = Statement(("ret",), [], self.statement.line, ())
        self.emit("ret", [0, 0, 0, self.frame_register()], "branch")

    def frame_register(self) -> int:
        """The register that holds where the running function's frame begins."""
        self.registers.widths["%kb_frame"] = 64
        return self.registers.named("%kb_frame")[0]

    def lower_body(self, function: Function) -> None:
        """Statements of a function under the current prefix."""
        self.current = function
        for name, kind in function.registers.items():
            if kind not in TYPE_BYTES:
                raise NotEmulatable(kind, function.line, "registers of this type")
            if kind == ".b128":
                for half in halves(name):
                    self.declare_register(half, 64)
                continue
            self.declare_register(name, max(width_of(kind[1:]), 16) if kind != ".pred" else PREDICATE)
        frame = self.context.calls.frame(function)
        if self.prefix:
            for one in (*function.results, *function.parameters):
                self.declare(one, frame.offsets[one.name])
        for variable in function.variables:
            self.declare(variable, frame.offsets.get(variable.name))
        for item in function.body:
            if isinstance(item, Label) and item.targets:
                self.branch_targets[self.prefix + item.name] = item.targets
        waited, merged = waits(function.body), merged_loads(function.body)
        fused = contractions(function.body)
        steering = None if self.reachable else steering_loads(function.body)
        for index, item in enumerate(function.body):
            if isinstance(item, Label):
                self.positions[self.prefix + item.name] = len(self.kernel.code)
                continue
            self.statement, before, self.merged = item, len(self.kernel.code), merged.get(index)
            self.steers = steering is None or index in steering
            self.contraction = fused.get(index)
            self.lower_one(item)
            if index in waited and len(self.kernel.code) > before:
                self.kernel.code[-1].wait = waited[index]

    def lower_one(self, statement: Statement) -> None:
        """One instruction. Operands that are not where its form has them make it unsupported, not a crash."""
        try:
            self.lower_statement(self, statement)
        except (ValueError, IndexError, KeyError) as error:
            raise self.unsupported("operands or modifiers of an unexpected form") from error

    def finish(self) -> None:
        """Resolve labels and dynamic shared memory; fill the tables."""
        self.kernel.static_shared = aligned(self.kernel.static_shared, self.dynamic_align)  # ptxas counts the gap, too
        self.kernel.constants = self.registers.constants(dynamic=aligned(self.kernel.static_shared, 16))
        self.kernel.register_bytes = self.registers.size
        check_sizes(self.kernel, self.function.line)
        self.kernel.specials = [(offset, name) for name, offset in self.registers.specials.items()]
        self.kernel.local_bytes = aligned(self.kernel.local_bytes, 16)
        for one in self.kernel.code:
            if one.target is not None:
                if one.target not in self.positions:
                    raise NotEmulatable("bra", one.line, f"unknown label {one.target}")
                one.immediate = self.positions[one.target]
        self.finish_calls()

    def finish_calls(self) -> None:
        """Where called functions begin and, for those that may be active twice, which registers a call saves."""
        saved: dict[str, int] = {}
        for at, name in self.call_targets:
            self.kernel.registers[at] = self.positions[f"function {name}"]
            if name in self.recursive:
                if name not in saved:
                    saved[name] = len(self.kernel.registers)
                    own = self.registers.own(name)
                    self.kernel.registers += [len(own) // 2, *own]
                self.kernel.registers[at + 1] = saved[name]
