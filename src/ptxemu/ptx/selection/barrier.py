"""`mbarrier`: barriers in shared memory, of the block itself or of another one of its cluster."""

from __future__ import annotations

from ptxemu.ptx import module as out
from ptxemu.ptx.lowering import FunctionLowering
from ptxemu.ptx.operations import PREDICATE
from ptxemu.ptx.selection.memory import SPACES, locate
from ptxemu.ptx.tree import Operand, Statement

_ORDERINGS = frozenset(["release", "acquire", "relaxed", "cta", "cluster", "b64", "noComplete"])


def _emit(low: FunctionLowering, name: str, address: Operand, space: str, first: list[int], flags: int = 0) -> None:
    """An operation on the barrier at an address; `first` are its result and its second operand."""
    where, base, wide, offset = locate(low, address, space)
    low.emit(
        name,
        [*first, *[0] * (4 - len(first)), base],
        "bar",
        flags=wide | flags,
        immediate=offset,
        memory=low.memory(where, "atomic", 8),
        extra=SPACES[where],
    )


def mbarrier(low: FunctionLowering, statement: Statement) -> None:
    """`mbarrier.VERB`, with results of arrivals that nobody reads left out."""
    parts = [part for part in statement.parts[1:] if part not in _ORDERINGS]
    space = "shared" if any(part.startswith("shared") for part in parts) else "generic"
    verb = "_".join(part for part in parts if not part.startswith("shared"))
    operands = statement.operands
    if verb in ("init", "inval", "expect_tx", "complete_tx"):
        second = low.read(operands[1], 32) if len(operands) > 1 else 0
        _emit(low, f"mbarrier_{verb}", operands[0], space, [0, second])
    elif verb in ("arrive", "arrive_drop", "arrive_expect_tx"):
        result, address, *count = operands
        returns = result != "_"
        target = low.destination(result, 64) if returns else 0
        arrivals = low.read(count[0] if count else "1", 32)
        _emit(low, f"mbarrier_{verb}", address, space, [target, arrivals], out.HAS_RESULT if returns else 0)
    elif verb in ("test_wait", "try_wait", "test_wait_parity", "try_wait_parity"):
        by_parity = verb.endswith("parity")
        state = low.read(operands[2], 32 if by_parity else 64)
        name = "mbarrier_test_wait_parity" if by_parity else "mbarrier_test_wait"
        _emit(low, name, operands[1], space, [low.destination(operands[0], PREDICATE), state], out.BYPASS_L1)
    elif verb == "pending_count":
        low.emit("mbarrier_pending_count", [low.destination(operands[0], 32), low.read(operands[1], 64)], "alu")
    else:
        raise low.unsupported()


def complete_store(low: FunctionLowering, barrier: Operand, size: str) -> None:
    """What an asynchronous store or reduction of `size` bytes does to the barrier that counts it."""
    _emit(low, "mbarrier_complete_store", barrier, "shared", [0, low.read(size, 32)])


def arrive_after_copies(low: FunctionLowering, statement: Statement) -> None:
    """`cp.async.mbarrier.arrive`: copies are done at once. Without `.noinc` it announces itself: no net effect."""
    if "noinc" not in statement.parts:
        low.emit("nop", [], "alu")
        return
    space = "shared" if any(part.startswith("shared") for part in statement.parts) else "generic"
    _emit(low, "mbarrier_arrive", statement.operands[0], space, [0, low.read("1", 32)])


BARRIER = {"mbarrier": mbarrier}
