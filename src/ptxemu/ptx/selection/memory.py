"""Loads, stores, atomics and asynchronous copies of a thread.

Cache hints are dropped, except those that make a load bypass L1; memory ordering is that of the interleaving the
core executes, so scopes and semantics are dropped too.
"""

from __future__ import annotations

from ptxemu.ptx import module as out
from ptxemu.ptx.lowering import FunctionLowering
from ptxemu.ptx.operations import PREDICATE, memory_operations, width_of
from ptxemu.ptx.tree import TYPE_BYTES, Address, Group, Operand, Statement, literal

SPACES = {"global": 0, "shared": 1, "local": 2, "generic": 3, "const": 4, "param": 5}
_POLLS = frozenset(["volatile", "relaxed", "acquire", "cv", "mmio"])
"""Loads that are written to see what others have written."""
_BYPASS = _POLLS | {"cg"}
_HINTS = frozenset(
    ["weak", "cta", "gpu", "sys", "cluster", "ca", "cs", "lu", "wb", "wt", "nc", "release", "acq_rel", "noftz"]
)
_ATOMICS = frozenset(["add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"])


class _Form:
    """The modifiers of a memory instruction, sorted out."""

    def __init__(self, low: FunctionLowering, statement: Statement) -> None:
        self.space, self.elements, self.flags, self.operation = "generic", 1, 0, ""
        # Vectors of atomics may have the operation behind the type.
        after = statement.parts[0] in ("atom", "red") and statement.parts[-1] in _ATOMICS
        self.kind = statement.parts[-2 if after else -1]
        for part in (one for one in statement.parts[1:] if one != self.kind):
            head = part.partition("::")[0]
            if head in SPACES:
                self.space = head
            elif part in ("v2", "v4", "v8"):
                self.elements = int(part[1])
            elif part in _BYPASS:
                self.flags |= out.BYPASS_L1
            elif part in _ATOMICS:
                self.operation = part
            elif part not in _HINTS and head not in ("L1", "L2"):
                raise low.unsupported(f"modifier .{part}")
        if "." + self.kind not in TYPE_BYTES:
            raise low.unsupported(f"memory type .{self.kind}")
        self.bytes = TYPE_BYTES["." + self.kind]


def locate(low: FunctionLowering, address: Operand, space: str) -> tuple[str, int, int, int]:
    """Space, address register, flag of its width, and offset of `[base + offset]`."""
    if isinstance(address, str):
        address = Address(address, 0)
    if not isinstance(address, Address):
        raise low.unsupported("an address is expected")
    if low.is_register(address.base):
        if space == "param" and low.prefix:
            raise low.unsupported("parameters of a function addressed through a register")
        wide = low.width(address.base) == 64
        return space, low.register(address.base), out.WIDE_ADDRESS if wide else 0, address.offset
    if address.base[:1].isdigit():
        return space, low.read(address.base, 64), out.WIDE_ADDRESS, address.offset
    found = low.find_symbol(address.base)
    if found is None:
        raise low.unsupported(f"unknown symbol {address.base}")
    if found[0] == "frame":
        if space not in ("param", "local", "generic"):
            raise low.unsupported(f"{address.base} is no address of this space")
        return "local", low.frame_register(), out.WIDE_ADDRESS, address.offset + found[1]
    if space in ("param", "generic"):
        space = found[0]
    if space not in SPACES:
        raise low.unsupported(f"{address.base} is no address")
    return space, low.symbol_constant(address.base, 0, 64), out.WIDE_ADDRESS, address.offset


def _values(operand: Operand, elements: int) -> list[Operand]:
    return list(operand.items) if isinstance(operand, Group) else [operand] * elements


def _class(prefix: str, written: str, space: str) -> str:
    if written == "param":
        return "ld_param" if space == "param" else "mov"
    return f"{prefix}_{'global' if space == 'generic' else space}"


def _element_name(low: FunctionLowering, prefix: str, form: _Form, width: int, elements: int) -> str:
    sign = "s" if form.kind[0] == "s" and width > form.bytes * 8 and prefix == "ld" else "u"
    stem = f"{prefix}_{sign}{form.bytes * 8}_{width}"
    if stem not in memory_operations() or elements == 8:
        raise low.unsupported()
    return f"{stem}_v{elements}"


def load(low: FunctionLowering, statement: Statement) -> None:
    """`ld` from any space, up to four elements."""
    form = _Form(low, statement)
    targets = _values(statement.operands[0], 1)
    if len(targets) != form.elements:
        raise low.unsupported("vector of this length")
    natural = max(form.bytes * 8, 16)
    width = next((low.width(one) for one in targets if one != "_" and isinstance(one, str)), natural)
    space, base, wide, offset = locate(low, statement.operands[1], form.space)
    if space in ("global", "generic") and _POLLS & set(statement.parts):
        low.kernel.communicates = True
    registers = [low.destination(one, width) if one != "_" else low.register(low.temporary(width)) for one in targets]
    low.emit(
        _element_name(low, "ld", form, width, form.elements),
        [*registers, *[0] * (4 - len(registers)), base],
        _class("ld", form.space, space),
        flags=form.flags | wide,
        immediate=offset,
        memory=low.memory("param" if form.space == "param" else space, "load", form.bytes * form.elements),
        extra=SPACES[space],
    )


def store(low: FunctionLowering, statement: Statement) -> None:
    """`st` to any space, up to four elements."""
    form = _Form(low, statement)
    values = _values(statement.operands[1], 1)
    if len(values) != form.elements:
        raise low.unsupported("vector of this length")
    natural = max(form.bytes * 8, 16)
    width = next((low.width(one) for one in values if low.is_register(one) and isinstance(one, str)), natural)
    space, base, wide, offset = locate(low, statement.operands[0], form.space)
    if space in ("const", "param"):
        raise low.unsupported("stores to this space")
    registers = [low.read(one, width) for one in values]
    low.emit(
        _element_name(low, "st", form, width, form.elements),
        [*registers, *[0] * (4 - len(registers)), base],
        "mov" if form.space == "param" else f"st_{'global' if space == 'generic' else space}",
        flags=wide,
        immediate=offset,
        memory=low.memory("param" if form.space == "param" else space, "store", form.bytes * form.elements),
        extra=SPACES[space],
    )


def atomic(low: FunctionLowering, statement: Statement) -> None:
    """`atom` and `red`"""
    form = _Form(low, statement)
    has_result = statement.parts[0] == "atom"
    operands = statement.operands if has_result else ["_", *statement.operands]
    result, address, *values = operands
    name = _atomic_name(low, form)
    width = width_of(form.kind)
    returns = has_result and result != "_"
    if "f" in form.kind or returns or form.operation in ("exch", "cas"):
        low.kernel.order_dependent = True
    if returns and form.space != "shared":
        low.kernel.communicates = True
    if form.elements != 1:
        _vector_atomic(low, form, f"{name}_v{form.elements}", operands, has_result)
        return
    space, base, wide, offset = locate(low, address, form.space)
    sources = [low.read(value, width) for value in values]
    target = low.destination(result, width) if returns else low.register(low.temporary(width))
    low.emit(
        name,
        [target, *sources, *[target] * (3 - len(sources)), base],
        "atom",
        flags=wide | out.BYPASS_L1 | (out.HAS_RESULT if returns else 0),
        immediate=offset,
        memory=low.memory(space, "atomic" if has_result else "reduction", form.bytes),
        extra=SPACES[space],
    )


def _vector_atomic(low: FunctionLowering, form: _Form, name: str, operands: list[Operand], has_result: bool) -> None:
    result, address, source = operands
    width = width_of(form.kind)
    values = _values(source, 1)
    targets = _values(result, form.elements) if has_result else ["_"] * form.elements
    if name not in memory_operations() or len(values) != form.elements or len(targets) != form.elements:
        raise low.unsupported("vector atomics of this form")
    sources = [low.read(one, width) for one in values]
    start = len(low.kernel.registers)
    low.kernel.registers += [*(low.destination(one, width) for one in targets), *sources]
    space, base, wide, offset = locate(low, address, form.space)
    low.emit(
        name,
        [0, 0, 0, start, base],
        "atom",
        flags=wide | out.BYPASS_L1 | (out.HAS_RESULT if has_result else 0),
        immediate=offset,
        memory=low.memory(space, "atomic" if has_result else "reduction", form.bytes * form.elements),
        extra=SPACES[space],
    )


def _atomic_name(low: FunctionLowering, form: _Form) -> str:
    for kind in (form.kind, f"b{form.bytes * 8}"):
        name = f"atom_{form.operation}_{kind}"
        if name in memory_operations() and not (form.kind[0] == "f" and kind[0] == "b" and form.operation == "add"):
            return name
    raise low.unsupported()


def _bytes_to_read(low: FunctionLowering, operand: Operand, count: int) -> int:
    """The register with the bytes to read: given, all of them, or none where a predicate says to ignore the source."""
    if isinstance(operand, str) and low.is_register(operand.lstrip("!")):
        if low.width(operand.lstrip("!")) == 32:
            return low.read(operand, 32)
        if low.width(operand.lstrip("!")) == PREDICATE:
            chosen = low.temporary(32)
            low.emit_lane("selp_b32", chosen, ["0", str(count), operand], "alu")
            return low.register(chosen)
    elif isinstance(operand, str) and operand and literal(operand) is not None:
        return low.read(operand, 32)
    return low.constant(count, 32)


def copy_async(low: FunctionLowering, statement: Statement) -> None:
    """`cp.async`: the copy is executed at once, waiting for it is nothing."""
    parts = statement.parts
    if parts[2] in ("commit_group", "wait_group", "wait_all"):
        low.emit("nop", [], "alu")
        return
    if parts[2] not in ("ca", "cg") or parts[3] not in ("shared", "shared::cta"):
        raise low.unsupported()
    target, source, size, *rest = statement.operands
    count = literal(size) if isinstance(size, str) else None
    if count not in (4, 8, 16):
        raise low.unsupported("a copy size that is not 4, 8 or 16")
    reading = _bytes_to_read(low, rest[0] if rest else "", count)
    _, to, to_wide, to_offset = locate(low, target, "shared")
    _, base, wide, offset = locate(low, source, "global")
    if not wide:
        raise low.unsupported("32-bit global addresses")
    memory = low.memory("global", "load", count)
    low.memory("shared", "store", count)
    low.emit(
        "cp_async",
        [to, to_offset & 0xFFFFFFFF, count, reading, base],
        "ld_global",
        flags=(out.HAS_RESULT if to_wide else 0) | (out.BYPASS_L1 if parts[2] == "cg" else 0),
        immediate=offset,
        memory=memory,
    )


MEMORY = {"ld": load, "ldu": load, "st": store, "atom": atomic, "red": atomic}
