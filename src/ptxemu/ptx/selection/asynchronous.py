"""`st.async` and `red.async`: stores and reductions in the shared memory of a cluster, which its `mbarrier` counts.

They are executed at once, as a GPU may. PTX defines them in clusters of several blocks alone: elsewhere they fail.
"""

from __future__ import annotations

from dataclasses import replace

from ptxemu.ptx.lowering import FunctionLowering
from ptxemu.ptx.selection.barrier import complete_store
from ptxemu.ptx.selection.memory import atomic, store
from ptxemu.ptx.tree import TYPE_BYTES, Statement

_COUNTS = {"v2": 2, "v4": 4}


def is_asynchronous(statement: Statement) -> bool:
    """Whether an instruction is one of these."""
    return "async" in statement.parts


def store_or_reduce(low: FunctionLowering, statement: Statement) -> None:
    """`st.async{.sem.scope}{.ss}{.completion}{.vec}.type [a], b, [mbar]` and `red.async`"""
    if any(part.startswith("global") for part in statement.parts):
        raise low.unsupported("asynchronous accesses to global memory are not emulated")
    address, source, barrier = statement.operands
    kept = [part for part in statement.parts if part != "async" and not part.startswith(("mbarrier", "shared"))]
    count = next((_COUNTS[part] for part in kept if part in _COUNTS), 1)
    accesses = store if statement.parts[0] == "st" else atomic
    parts = (kept[0], "shared::cluster", *kept[1:])
    accesses(low, replace(statement, parts=parts, operands=[address, source]))
    complete_store(low, barrier, str(TYPE_BYTES["." + kept[-1]] * count))
