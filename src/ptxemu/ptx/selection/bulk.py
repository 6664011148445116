"""`cp.async.bulk` between global and shared memory; tensor maps and multicast are left out."""

from __future__ import annotations

from ptxemu.ptx import module as out
from ptxemu.ptx.lowering import FunctionLowering
from ptxemu.ptx.selection.memory import locate
from ptxemu.ptx.tree import Statement, integer

_INTO = {("shared::cluster", "global"): True, ("shared::cta", "global"): True, ("global", "shared::cta"): False}
_COMPLETIONS = {True: "mbarrier::complete_tx::bytes", False: "bulk_group"}
_HINTS = frozenset(["L2::cache_hint", "bulk_group", "mbarrier::complete_tx::bytes"])


def bulk_copy(low: FunctionLowering, statement: Statement) -> None:
    """`cp.async.bulk` and its groups."""
    verb = statement.parts[3]
    if verb == "commit_group":
        low.emit("bulk_commit", [], "bar")
    elif verb == "wait_group":
        if not isinstance(statement.operands[0], str):
            raise low.unsupported("a number of groups is expected")
        low.emit("bulk_wait", [], "bar", immediate=integer(statement.operands[0]))
    elif verb == "prefetch" and "tensor" not in statement.parts:
        low.emit("nop", [], "alu")
    elif "tensor" in statement.parts:
        raise low.unsupported("copies by tensor maps are not emulated")
    else:
        _copy(low, statement)


def _copy(low: FunctionLowering, statement: Statement) -> None:
    """Operands: destination, source, bytes, the mbarrier of a copy into shared memory, and perhaps a cache policy."""
    places, modifiers = statement.parts[3:5], frozenset(statement.parts[5:])
    into = _INTO.get((places[0], places[1]))
    if into is None or "multicast::cluster" in modifiers:
        raise low.unsupported("multicast, and copies from shared to shared memory, are not emulated")
    if _COMPLETIONS[into] not in modifiers or modifiers - _HINTS:
        raise low.unsupported("a bulk copy of this form")
    target, source, size, *rest = statement.operands
    shared, remote = (target, source) if into else (source, target)
    _, near, near_wide, near_offset = locate(low, shared, "shared")
    _, far, far_wide, far_offset = locate(low, remote, "global")
    if not far_wide:
        raise low.unsupported("32-bit global addresses")
    barrier = barrier_wide = barrier_offset = 0
    if into:
        _, barrier, barrier_wide, barrier_offset = locate(low, rest[0], "shared")
    low.emit(
        "bulk_copy",
        [near, near_offset & 0xFFFFFFFF, low.read(size, 32), barrier, far, barrier_offset & 0xFFFFFFFF],
        "bar",
        flags=(out.HAS_RESULT if near_wide else 0) | barrier_wide,
        immediate=far_offset,
        memory=low.memory("global", "load" if into else "store", 16),
        extra=int(into),
    )
