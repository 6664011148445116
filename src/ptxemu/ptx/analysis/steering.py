"""Which loads steer a kernel: what they read may decide what is executed, or which addresses are accessed.

A slice backwards from guards, branches and addresses: whatever a value is computed from steers, too. Shared, local and
global memory count as one variable each, so that a value that passes through them is followed, and loads that can read
nothing the kernel writes (`.nc`, parameters, constants) end the slice. Where the slice is not exact it is too large.
Counts of a launch depend on what steering loads read and on nothing else in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxemu.ptx.analysis.dataflow import addresses, flow, names
from ptxemu.ptx.tree import Label, Statement

_DECIDES = frozenset(["bra", "brx", "call", "mbarrier", "cp"])
"""All that these read steers."""


def steering_loads(body: Sequence[Statement | Label]) -> frozenset[int]:
    """Indices in the body of the loads, atomics and asynchronous copies whose values may steer."""
    flows = {index: flow(item) for index, item in enumerate(body) if isinstance(item, Statement)}
    wanted = {name for item in body if isinstance(item, Statement) for name in _roots(item)}
    steering: set[int] = set()
    grown = True
    while grown:
        before = len(wanted)
        for index, one in flows.items():
            if not (one.results & wanted or one.stores & wanted):
                continue
            wanted |= one.sources | one.loads
            if one.is_load:
                steering.add(index)
        grown = len(wanted) > before
    return frozenset(steering)


def _roots(item: Statement) -> Iterator[str]:
    """Registers that decide what is executed or where."""
    if item.guard is not None:
        yield item.guard
    if item.parts[0] in _DECIDES:
        yield from names(item.operands)
    else:
        yield from addresses(item.operands)
