"""How long one warp would take if it had the GPU to itself: instructions, and latencies that nothing overlaps.

The core counts how often a warp stands on the longest chain of dependent instructions of a region, by kind of latency
(`ptx/waits.py`). Each stands for the latency of its kind; beside that, every machine instruction holds its warp for a
few clocks. Loads take as long as the caches that serve them: the miss rate of the L1 is weighted, since a hit on a
line that another warp has just asked for waits as long as that one's miss.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelblaster.devices.emulated.architecture import Architecture
from kernelblaster.devices.emulated.ptx.waits import UNROLLED
from kernelblaster.devices.emulated.record import (
    EXECUTED,
    SECTOR_BYTES,
    LaunchRecord,
    MachineCounts,
    MemoryInstruction,
    Space,
)
from kernelblaster.devices.emulated.traffic import LINE_BYTES, loads


@dataclass(frozen=True)
class Chain:
    """Clocks that one warp takes, by cause, when nothing is contended."""

    global_memory: float
    short: float
    """Shared memory, shuffles and the transcendental unit."""
    barrier: float
    arithmetic: float
    """Dependent arithmetic, and the clocks of every instruction itself."""

    @property
    def total(self) -> float:
        """Clocks from a warp's first instruction to its last."""
        return self.global_memory + self.short + self.barrier + self.arithmetic


def chain_of(
    record: LaunchRecord,
    machine: MachineCounts,
    dram_read_bytes: float,
    architecture: Architecture,
) -> Chain:
    """The chain of an average warp.

    Args:
        record: counts of the launch.
        machine: its machine instructions; spills are loaded back a few at a time.
        dram_read_bytes: of the launch.
        architecture: latencies.
    """
    latency, timing, warps = architecture.latency, architecture.timing, record.warps
    waits = {kind: count / warps for kind, count in record.waits.items()}
    shared = list(record.accesses((Space.SHARED,), EXECUTED))
    passes = sum(one.wavefronts for one in shared) / max(1, sum(one.requests for one in shared))
    spills = machine.spill_loads / warps / timing.spills_in_flight
    return Chain(
        global_memory=(waits.get("global", 0.0) + waits.get("global_unrolled", 0.0) / UNROLLED)
        * load_latency(record, dram_read_bytes, architecture)
        + timing.line_clocks * _further_lines(record) / warps
        + waits.get("atomic", 0.0) * latency.atomic
        + spills * latency.l1,
        short=(waits.get("shared", 0.0) + waits.get("shared_unrolled", 0.0) / UNROLLED)
        * (latency.shared + timing.conflict_clocks * max(0.0, passes - 1))
        + waits.get("shuffle", 0.0) * latency.shuffle
        + waits.get("special", 0.0) * latency.xu,
        barrier=record.count("bar") / warps * latency.barrier,
        arithmetic=machine.instructions / warps * timing.instruction_clocks
        + waits.get("arithmetic", 0.0) * latency.alu
        + waits.get("double", 0.0) * latency.double
        + waits.get("tensor", 0.0) * latency.tensor
        + waits.get("division", 0.0) * latency.division,
    )


def load_latency(record: LaunchRecord, dram_read_bytes: float, architecture: Architecture) -> float:
    """Clocks of a mean load: L1, L2 or DRAM by where its sectors come from.

    A request waits for its slowest sector, so DRAM sectors are held against those that dense requests would need.
    """
    latency, timing = architecture.latency, architecture.timing
    found = list(loads(record))
    sectors = sum(one.sectors for one in found)
    if sectors == 0:
        return latency.l2
    missed = min(1.0, timing.l1_miss_weight * sum(_missed(one) for one in found) / sectors)
    dense = sum(min(_missed(one), one.ideal_sectors) for one in found)
    from_dram = min(1.0, dram_read_bytes / SECTOR_BYTES / dense) if dense else 0.0
    beyond = from_dram * latency.dram + (1 - from_dram) * latency.l2
    return latency.l1 + missed * (beyond - latency.l1)


def _further_lines(record: LaunchRecord) -> float:
    """Lines of all loads beyond those that the same bytes fill."""
    return sum(
        max(0.0, one.wavefronts - max(one.requests, one.lanes * one.bytes_per_lane / LINE_BYTES))
        for one in loads(record)
    )


def _missed(one: MemoryInstruction) -> int:
    return one.sectors - one.l1_hit_sectors
