"""How long one warp would take if it had the GPU to itself: instructions, and latencies that nothing overlaps.

Where machine code is at hand, its schedule says what a warp waits for (`machine/schedule.py`). Elsewhere the core
counts how often a warp stands on the longest chain of dependent PTX instructions of a region, by kind of latency
(`ptx/analysis/waits.py`), and every machine instruction holds its warp for a few clocks. Loads take as long as the
caches that serve them (`load_latency.py`); a warp that waits for several waits for the last.

Products by a warpgroup go on while its warps do, until these wait for them; the warpgroups of a block take turns at the
tensor cores, and their warps issue the same code at the same time. Of launches with such products the chain is that of
the warps that multiply: what tensor cores do not hide (the first tile, waits, the epilogue) is in it, and so are they.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxemu.counters.launch import EXECUTED, GLOBAL_SPACES, WARP_THREADS, LaunchRecord, MachineCounts, Space
from ptxemu.machine.schedule import WARPGROUP_WARPS, WaitCause, WarpPath
from ptxemu.model.architecture import Architecture, GpuModel, Latency
from ptxemu.model.load_latency import LoadLatency
from ptxemu.model.traffic import DEVICE_SPACES, bulk_read_sectors, further_lines, loads, operand_clocks
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
    loaded = LoadLatency.of(record, spaces, dram_read_bytes, rounds, architecture)
    lines = architecture.timing.line_clocks * sum(further_lines(one) for one in loads(record)) / record.warps
    shared = _shared_latency(record, architecture)
    if machine.path is None:
        return _chain_of_ptx(record, machine, loaded.mean, lines, shared, architecture)
    latencies, path, sharing, first_tile = _latencies(architecture.latency, loaded.mean, shared), machine.path, 1.0, 0.0
    if record.warpgroup_fma and path.products:
        path, sharing, latencies[WaitCause.PRODUCT] = _multiplying(record, machine, path, gpu)
        first_tile = architecture.latency.dram if bulk_read_sectors(record) else 0.0
    clocks = path.clocks(latencies, sharing, loaded.by_line())
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


def _multiplying(
    record: LaunchRecord, machine: MachineCounts, path: WarpPath, gpu: GpuModel
) -> tuple[WarpPath, float, float]:
    """Path of the warps that multiply by warpgroups, how many of a block share a scheduler, and the clocks from one
    product to the next of the same warpgroup while all of the block are at it.

    A product takes as long as the tensor cores do, or as shared memory with its operands and the tiles that come.
    """
    own, warps = path.of_products(-(-record.threads_per_block // WARP_THREADS))
    moved = operand_clocks(record, machine) / gpu.architecture.timing.pipe_share
    products = record.warps * path.products / WARPGROUP_WARPS
    one = max(record.warpgroup_fma / gpu.warpgroup_fma_per_clk, moved) / products
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
