"""How long loads take: as the L1, the L2 or DRAM serves them, by what is counted of each load instruction.

A request waits for its slowest sector, so DRAM sectors are held against those that dense requests would need. A hit in
the L1 on a line that another warp has just asked for waits as long as that one's miss; so does one in the L2 that
another SM has just asked for, but not what a block asks for again. DRAM brings sectors in pairs: a warp that finds what
it wants in its L1 more often than not walks along lines, and half of its misses are second halves, which the L2 has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log2

from ptxemu.counters.launch import SECTOR_BYTES, Access, LaunchRecord, MemoryInstruction, Space
from ptxemu.machine.arrivals import ArrivalTime
from ptxemu.model.architecture import Architecture
from ptxemu.model.traffic import least_passes

_PAIR = 2
"""Sectors that DRAM brings at a time: it moves 64 bytes at least."""


@dataclass(frozen=True)
class LoadLatency:
    """Latencies of a launch's loads from device memory.

    Attributes:
        loads: what is counted of them, by instruction.
        from_dram: share of the sectors missing in the L1 that come from DRAM.
        under_way: share of the hits on lines of other warps that wait as long as those.
        architecture: latencies of the levels.
    """

    loads: tuple[MemoryInstruction, ...]
    from_dram: float
    under_way: float
    architecture: Architecture

    @classmethod
    def of(
        cls,
        record: LaunchRecord,
        spaces: Iterable[Space],
        dram_read_bytes: float,
        rounds: float,
        architecture: Architecture,
    ) -> LoadLatency:
        """Of the loads from some spaces; `rounds` of resident blocks, of which only the first waits for others."""
        timing = architecture.timing
        loads = tuple(one for one in record.accesses(spaces, (Access.LOAD,)) if one.requests)
        again = min(1.0, record.repeated_read_sectors / max(1, record.l2_read_sectors))
        first = (1 - again) * sum(min(_missed(one), one.ideal_sectors) for one in loads)
        brought = timing.reads_under_way * dram_read_bytes / SECTOR_BYTES
        from_dram = (1 - again) * min(1.0, brought / first) if first else 0.0
        return cls(loads, from_dram, timing.l1_under_way / rounds, architecture)

    @property
    def mean(self) -> float:
        """Clocks of a mean load."""
        return self._arrival(self.loads).expected(0.0) if self.loads else self.architecture.latency.l2

    def by_line(self) -> dict[int, ArrivalTime]:
        """When a load comes, in clocks from its issue, by the line of the PTX it stands in."""
        lines: defaultdict[int, list[MemoryInstruction]] = defaultdict(list)
        for one in self.loads:
            if one.ptx_line is not None:
                lines[one.ptx_line].append(one)
        return {line: self._arrival(own) for line, own in lines.items()}

    def _arrival(self, loads: Sequence[MemoryInstruction]) -> ArrivalTime:
        latency, timing = self.architecture.latency, self.architecture.timing
        requests = sum(one.requests for one in loads)
        waiting = [self._waiting(one) for one in loads]
        beyond = sum(one.requests * share for one, share in zip(loads, waiting, strict=True)) / requests
        brought = [share * (1 - (1 - share) * (1 - 1 / _PAIR)) for share in waiting]
        farthest = self.from_dram * sum(a.requests * share for a, share in zip(loads, brought, strict=True)) / requests
        scattered = sum(one.wavefronts for one in loads) / sum(least_passes(one) for one in loads)
        far = latency.dram + timing.doubling_clocks * log2(max(1.0, scattered))
        return ArrivalTime(latency.l1, latency.l2, max(latency.l2, far), beyond, farthest)

    def _waiting(self, one: MemoryInstruction) -> float:
        """Share of a load's requests that wait for the L2: misses, and hits on what is still under way to another."""
        return min(1.0, (one.missed_requests + self.under_way * one.shared_requests) / one.requests)


def _missed(one: MemoryInstruction) -> int:
    return one.sectors - one.l1_hit_sectors
