"""Which steps of a search went on from a kernel that another island had made."""

from __future__ import annotations

from collections.abc import Iterator

from kernelblaster.report.reading import ProblemRecord, allocated_slot


def migrants(record: ProblemRecord) -> frozenset[str]:
    """Slots of the steps whose parent was made on other islands alone; the start and what was recalled are on all."""
    return frozenset(_migrants(record, record.islands)) if record.islands else frozenset()


def _migrants(record: ProblemRecord, islands: int) -> Iterator[str]:
    homes: dict[str, set[int]] = {}
    for step in record.steps:
        if step.decided is not None and step.decided.accepted and step.candidate:
            homes.setdefault(step.candidate, set()).add(int(step.rollout.rpartition("-")[2]) % islands)
    for handed in record.handed:
        for one in handed.allocations:
            home = homes.get(one.parent.sha256)
            # A reply that joins two islands goes on from the fastest kernel of all: that is crossover.
            if home and one.index % islands not in home and one.donor is None:
                yield allocated_slot(record.row.problem, handed, one.index)
