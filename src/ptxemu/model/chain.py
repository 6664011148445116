"""How long one warp would take if it had the GPU to itself: instructions, and latencies that nothing overlaps.

Where machine code is at hand, its schedule says what a warp waits for (`machine/schedule.py`). Elsewhere the core
counts how often a warp stands on the longest chain of dependent PTX instructions of a region, by kind of latency
(`ptx/analysis/waits.py`), and every machine instruction holds its warp for a few clocks. Loads take as long as the
caches that serve them. A hit in the L1 on a line that another warp has just asked for waits as long as that one's miss;
so does one in the L2 that another SM has just asked for.

Products by a warpgroup go on while its warps do, until these wait for them; the warpgroups of a block take turns at the
tensor cores, and their warps issue the same code at the same time. Of launches with such products the chain is that of
the warps that multiply: what tensor cores do not hide (the first tile, waits, the epilogue) is in it, and so are they.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import log2

from ptxemu.counters.record import (
    EXECUTED,
    GLOBAL_SPACES,
    SECTOR_BYTES,
    WARP_THREADS,
    Access,
    LaunchRecord,
    MachineCounts,
    MemoryInstruction,
    Space,
)
from ptxemu.machine.schedule import WARPGROUP_WARPS, WaitCause, WarpPath
from ptxemu.model.architecture import Architecture, GpuModel, Latency
from ptxemu.model.traffic import DEVICE_SPACES, bulk_read_sectors, further_lines, least_passes, loads
from ptxemu.ptx.analysis.waits import UNROLLED

_SHORT = (WaitCause.SHARED, WaitCause.SHUFFLE, WaitCause.SPECIAL, WaitCause.CONSTANT, WaitCause.REGISTER)


@dataclass(frozen=True)
class Chain:
    """Clocks that one warp takes, by cause, when nothing is contended."""

    global_memory: float
    short: float
    """Shared memory, shuffles, the transcendental unit, special registers and computed constants."""
    barrier: float
    wait: float
    """Latencies of arithmetic."""
    products: float
    """Products by warpgroups."""
    issue: float
    """The clocks of every instruction itself, and of branches."""

    @property
    def total(self) -> float:
        """Clocks from a warp's first instruction to its last."""
        return self.global_memory + self.short + self.barrier + self.wait + self.products + self.issue


def chain_of(
    record: LaunchRecord, machine: MachineCounts, dram_read_bytes: float, rounds: float, gpu: GpuModel
) -> Chain:
    """The chain of an average warp, or of one that multiplies by warpgroups where there are such.

    Args:
        record: counts of the launch.
        machine: its machine instructions.
        dram_read_bytes: of the launch.
        rounds: of resident blocks on an SM.
        gpu: latencies and rates.
    """
    architecture = gpu.architecture
    spaces = DEVICE_SPACES if machine.path is None else GLOBAL_SPACES
    load = load_latency(record, spaces, dram_read_bytes, rounds, architecture)
    lines = architecture.timing.line_clocks * sum(further_lines(one) for one in loads(record)) / record.warps
    shared = _shared_latency(record, architecture)
    if machine.path is None:
        return _chain_of_ptx(record, machine, load, lines, shared, architecture)
    latencies, path, sharing, first_tile = _latencies(architecture.latency, load, shared), machine.path, 1.0, 0.0
    if record.warpgroup_fma and path.products:
        path, sharing, latencies[WaitCause.PRODUCT] = _multiplying(record, path, gpu)
        first_tile = architecture.latency.dram if bulk_read_sectors(record) else 0.0
    clocks = path.clocks(latencies, sharing)
    return Chain(
        global_memory=clocks[WaitCause.GLOBAL]
        + clocks[WaitCause.LOCAL]
        + clocks[WaitCause.ATOMIC]
        + lines
        + first_tile,
        short=sum(clocks[one] for one in _SHORT),
        barrier=clocks[WaitCause.BARRIER],
        wait=clocks[WaitCause.WAIT] + clocks[WaitCause.DOUBLE] + clocks[WaitCause.TENSOR] + clocks[WaitCause.OPERANDS],
        products=clocks[WaitCause.PRODUCT],
        issue=clocks[WaitCause.ISSUE] + clocks[WaitCause.BRANCH],
    )


def _multiplying(record: LaunchRecord, path: WarpPath, gpu: GpuModel) -> tuple[WarpPath, float, float]:
    """Path of the warps that multiply by warpgroups, how many of a block share a scheduler, and the clocks from one
    product to the next of the same warpgroup while all of the block are at it."""
    own, warps = path.of_products(-(-record.threads_per_block // WARP_THREADS))
    one = record.warpgroup_fma / record.warps / path.products * WARPGROUP_WARPS / gpu.warpgroup_fma_per_clk
    return own, max(1.0, warps / gpu.architecture.schedulers), one * warps / WARPGROUP_WARPS


def _latencies(latency: Latency, load: float, shared: float) -> dict[WaitCause, float]:
    """Latency of each cause, given those of loads from global and shared memory."""
    return {
        WaitCause.BRANCH: latency.branch,
        WaitCause.BARRIER: latency.barrier,
        WaitCause.GLOBAL: load,
        WaitCause.LOCAL: latency.l1,
        WaitCause.SHARED: shared,
        WaitCause.ATOMIC: latency.atomic,
        WaitCause.SHUFFLE: latency.shuffle,
        WaitCause.SPECIAL: latency.xu,
        WaitCause.DOUBLE: latency.double,
        WaitCause.TENSOR: latency.tensor,
        WaitCause.PRODUCT: latency.tensor,
        WaitCause.CONSTANT: latency.constant,
        WaitCause.REGISTER: latency.special_register,
        WaitCause.OPERANDS: latency.operands,
    }


def _chain_of_ptx(
    record: LaunchRecord,
    machine: MachineCounts,
    load: float,
    lines: float,
    shared: float,
    architecture: Architecture,
) -> Chain:
    """The chain that follows from the PTX alone; spills are loaded back a few at a time."""
    latency, timing, warps = architecture.latency, architecture.timing, record.warps
    waits = {kind: count / warps for kind, count in record.waits.items()}
    spills = machine.spill_loads / warps / timing.spills_in_flight
    return Chain(
        global_memory=(waits.get("global", 0.0) + waits.get("global_unrolled", 0.0) / UNROLLED) * load
        + lines
        + waits.get("atomic", 0.0) * latency.atomic
        + spills * latency.l1,
        short=(waits.get("shared", 0.0) + waits.get("shared_unrolled", 0.0) / UNROLLED) * shared
        + waits.get("shuffle", 0.0) * latency.shuffle
        + waits.get("special", 0.0) * latency.xu,
        barrier=record.count("bar") / warps * latency.barrier,
        wait=waits.get("arithmetic", 0.0) * latency.alu
        + waits.get("double", 0.0) * latency.double
        + waits.get("tensor", 0.0) * latency.tensor
        + waits.get("division", 0.0) * latency.division,
        products=0.0,
        issue=machine.instructions / warps * timing.instruction_clocks,
    )


def _shared_latency(record: LaunchRecord, architecture: Architecture) -> float:
    """Clocks of a mean access to shared memory: its further passes take longer."""
    shared = list(record.accesses((Space.SHARED,), EXECUTED))
    passes = sum(one.wavefronts for one in shared) / max(1, sum(one.requests for one in shared))
    return architecture.latency.shared + architecture.timing.conflict_clocks * max(0.0, passes - 1)


def load_latency(
    record: LaunchRecord, spaces: Iterable[Space], dram_read_bytes: float, rounds: float, architecture: Architecture
) -> float:
    """Clocks of a mean load from some spaces: L1, L2 or DRAM by where its sectors come from.

    A request waits for its slowest sector, so DRAM sectors are held against those that dense requests would need. Where
    SMs read the same sectors, those that come soon after the first find them under way and wait as long as it does.
    """
    latency, timing = architecture.latency, architecture.timing
    found = list(record.accesses(spaces, (Access.LOAD,)))
    sectors = sum(one.sectors for one in found)
    if sectors == 0:
        return latency.l2
    requests = sum(one.requests for one in found if one.sectors)
    under_way = timing.l1_under_way / rounds
    missed = sum(one.requests * _waiting_share(one, under_way) for one in found) / requests
    dense = sum(min(_missed(one), one.ideal_sectors) for one in found)
    from_dram = min(1.0, timing.reads_under_way * dram_read_bytes / SECTOR_BYTES / dense) if dense else 0.0
    scattered = sum(one.wavefronts for one in found) / sum(least_passes(one) for one in found)
    from_dram_clocks = latency.dram + timing.doubling_clocks * log2(max(1.0, scattered))
    beyond = from_dram * from_dram_clocks + (1 - from_dram) * latency.l2
    return latency.l1 + missed * (beyond - latency.l1)


def _missed(one: MemoryInstruction) -> int:
    return one.sectors - one.l1_hit_sectors


def _waiting_share(one: MemoryInstruction, under_way: float) -> float:
    """Share of a load's requests that wait for the L2: misses, and hits on what is still under way to another warp.

    A request waits for its slowest sector. Later rounds of blocks find there what the first has brought, so that only
    the first waits for others.
    """
    return min(1.0, (one.missed_requests + under_way * one.shared_requests) / one.requests) if one.requests else 0.0
