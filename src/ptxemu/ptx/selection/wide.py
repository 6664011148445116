"""Values of 128 bits: two registers of 64 bits each, moved, loaded, stored and exchanged together."""

from __future__ import annotations

from dataclasses import replace

from ptxemu.ptx import module as out
from ptxemu.ptx.lowering import FunctionLowering, halves
from ptxemu.ptx.selection.memory import SPACES, load, locate, store
from ptxemu.ptx.tree import Group, Operand, Statement


def is_wide(statement: Statement) -> bool:
    """Whether an instruction is one of 128 bits."""
    return statement.parts[-1] == "b128"


def _both(low: FunctionLowering, operand: Operand) -> tuple[Operand, Operand]:
    """Low and high half of a register, or of `{low, high}`."""
    if isinstance(operand, Group):
        first, second = operand.items
        return first, second
    if operand == "_":
        return "_", "_"
    if not isinstance(operand, str) or not low.is_register(halves(operand)[0]):
        raise low.unsupported("a register of 128 bits is expected")
    return halves(operand)


def move_wide(low: FunctionLowering, statement: Statement) -> None:
    """`mov.b128` between registers, packing and unpacking."""
    targets, sources = (_both(low, operand) for operand in statement.operands)
    kept = [low.temporary(64), low.temporary(64)]  # a destination may be a source
    for one, source in zip(kept, sources, strict=True):
        low.emit_lane("mov_b64", one, [source], "mov")
    for target, one in zip(targets, kept, strict=True):
        if target != "_":
            low.emit_lane("mov_b64", target, [one], "mov")


def load_wide(low: FunctionLowering, statement: Statement) -> None:
    """`ld.b128`: of two elements, which no other thread comes between."""
    target, address = statement.operands
    parts = (*statement.parts[:-1], "v2", "b64")
    load(low, replace(statement, parts=parts, operands=[Group(_both(low, target)), address]))


def store_wide(low: FunctionLowering, statement: Statement) -> None:
    """`st.b128`"""
    address, source = statement.operands
    parts = (*statement.parts[:-1], "v2", "b64")
    store(low, replace(statement, parts=parts, operands=[address, Group(_both(low, source))]))


def atomic_wide(low: FunctionLowering, statement: Statement) -> None:
    """`atom.exch.b128` and `atom.cas.b128`"""
    result, address, *values = statement.operands
    verb = next(one for one in statement.parts if one in ("exch", "cas"))
    written = next((one for part in statement.parts if (one := part.partition("::")[0]) in SPACES), "generic")
    low.kernel.order_dependent = low.kernel.communicates = True
    sources = [low.read(half, 64) for value in values for half in _both(low, value)]
    if len(sources) != (4 if verb == "cas" else 2):
        raise low.unsupported()
    start = len(low.kernel.registers)
    low.kernel.registers += [*(low.destination(one, 64) for one in _both(low, result)), *sources]
    low.kernel.registers += sources[: 4 - len(sources)]
    space, base, wide, offset = locate(low, address, written)
    low.emit(
        f"atom_{verb}_b128",
        [0, 0, 0, start, base],
        "atom",
        flags=wide | out.BYPASS_L1 | (out.HAS_RESULT if result != "_" else 0),
        immediate=offset,
        memory=low.memory(space, "atomic", 16),
        extra=SPACES[space],
    )


WIDE = {"mov": move_wide, "ld": load_wide, "st": store_wide, "atom": atomic_wide}
