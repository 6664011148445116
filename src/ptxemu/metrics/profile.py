"""Nsight-named metrics of an emulated launch, from its counts and its modelled time.

Counts (sectors, requests, bytes) are exact for the PTX executed; machine instructions follow from the machine code
(`machine/`), or where it is not at hand from the PTX (`model/expansion.py`); hit rates come from the core's cache
model; times and everything relative to time come from `model/`. What neither knows is left out.
Percentages "of active" cycles are against the time without start and drain, those "of elapsed" against all of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ptxemu.counters.launch import EXECUTED, GLOBAL_SPACES, SECTOR_BYTES, WARP_THREADS, Access, MemoryInstruction, Space
from ptxemu.metrics.lines import LineProfile, line_profiles
from ptxemu.metrics.names import GUESSED_INSTRUCTIONS, NsightMetric
from ptxemu.metrics.notes import notes
from ptxemu.model.architecture import GpuModel
from ptxemu.model.kernel import GpuUnit, KernelEstimate
from ptxemu.model.occupancy import blocks_by_carve_out
from ptxemu.model.traffic import (
    DEVICE_SPACES,
    atomic_passes,
    bulk_read_sectors,
    bulk_written_sectors,
    l2_lookup_bytes,
    l2_sectors,
)

_ADU_CLOCKS = 2
"""Clocks that a warp instruction takes in the ADU of an SM, as `sm__throughput` of an H200 shows."""
_SM_UNITS = (GpuUnit.ISSUE, GpuUnit.FMA, GpuUnit.FMA_HEAVY, GpuUnit.ALU, GpuUnit.FP64, GpuUnit.XU, GpuUnit.TENSOR)
_OWN_UNITS = (*_SM_UNITS, GpuUnit.LSU, GpuUnit.LOOKUP)
"""Units that each SM has for itself."""
_APART, _APART_IF_CONTENDED = 0.05, 0.45
"""Part of a round for which slots are idle at the end, and what a unit that is always busy adds: chosen by the
occupancy that Nsight Compute gave of half of the conformance cases on an H200."""
_BETWEEN_BLOCKS = 450
"""Clocks for which a slot is empty between two blocks: from the occupancy that Nsight Compute gave of plain copies."""
_UNASKED_READS, _UNASKED_MISSES, _UNASKED_BYTES = 1000, 700, 3072
"""Sectors that the L2 is asked for by no thread of a launch, how many of them it lacks, and what comes from DRAM:
instructions, constants, the launch itself. Read off the launches on an H200 that touch least (`short_one_block`,
`many_tiny_launches`); other GPUs are taken to be alike."""
_PIPES = {
    NsightMetric.PIPE_ALU: GpuUnit.ALU,
    NsightMetric.PIPE_FP64: GpuUnit.FP64,
    NsightMetric.PIPE_XU: GpuUnit.XU,
    NsightMetric.PIPE_TENSOR: GpuUnit.TENSOR,
    NsightMetric.ISSUE_ACTIVE: GpuUnit.ISSUE,
}
_QUEUE_STALL = {
    GpuUnit.DRAM: NsightMetric.STALL_LONG_SCOREBOARD,
    GpuUnit.L2: NsightMetric.STALL_LONG_SCOREBOARD,
    GpuUnit.ATOMICS: NsightMetric.STALL_LONG_SCOREBOARD,
    GpuUnit.FMA: NsightMetric.STALL_MATH_THROTTLE,
    GpuUnit.FMA_HEAVY: NsightMetric.STALL_MATH_THROTTLE,
    GpuUnit.ALU: NsightMetric.STALL_MATH_THROTTLE,
    GpuUnit.FP64: NsightMetric.STALL_MATH_THROTTLE,
    GpuUnit.TENSOR: NsightMetric.STALL_MATH_THROTTLE,
    GpuUnit.XU: NsightMetric.STALL_MIO_THROTTLE,
}

COUNTED = frozenset(
    {
        NsightMetric.THREADS_PER_INSTRUCTION,
        NsightMetric.BRANCH_UNIFORMITY,
        NsightMetric.GLOBAL_LOAD_SECTORS,
        NsightMetric.GLOBAL_LOAD_REQUESTS,
        NsightMetric.GLOBAL_STORE_SECTORS,
        NsightMetric.GLOBAL_STORE_REQUESTS,
        NsightMetric.GLOBAL_ATOMIC_REQUESTS,
        NsightMetric.GLOBAL_REDUCTION_REQUESTS,
        NsightMetric.LOAD_SECTOR_USE,
        NsightMetric.STORE_SECTOR_USE,
        NsightMetric.LOCAL_LOADS,
        NsightMetric.LOCAL_STORES,
        NsightMetric.SHARED_WAVEFRONTS,
        NsightMetric.SHARED_LOAD_CONFLICTS,
        NsightMetric.SHARED_STORE_CONFLICTS,
        NsightMetric.THEORETICAL_OCCUPANCY,
        NsightMetric.LIMIT_BLOCKS,
        NsightMetric.LIMIT_WARPS,
        NsightMetric.LIMIT_REGISTERS,
        NsightMetric.LIMIT_SHARED,
        NsightMetric.REGISTERS_PER_THREAD,
        NsightMetric.SHARED_STATIC,
        NsightMetric.SHARED_DYNAMIC,
        NsightMetric.SHARED_PER_BLOCK,
        NsightMetric.GRID_SIZE,
        NsightMetric.BLOCK_SIZE,
        NsightMetric.WAVES,
    }
)
"""Metrics that are counted or follow from the launch; every other one rests on a model of ptxas, caches or time."""


@dataclass(frozen=True)
class KernelLaunch:
    """One kernel launch as Nsight Compute would show it.

    Attributes:
        name: readable name.
        grid, block: extents.
        metrics: Nsight name -> value in Nsight's base unit (ns, bytes, %, ratio, count); the duration and everything
            relative to it is modelled, the rest counted. What is not known is absent.
        notes: facts in words, e.g. `occupancy_limiter: registers`.
        symbol: mangled name.
        lines: the source lines at which its warps wait most, as many as were asked for.
    """

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    metrics: dict[str, float] = field(hash=False)
    notes: dict[str, str] = field(hash=False)
    symbol: str
    lines: tuple[LineProfile, ...] = ()


def kernel_launch(estimate: KernelEstimate, gpu: GpuModel, *, lines: int = 0) -> KernelLaunch:
    """One launch as Nsight Compute would show it, with so many of its hottest source lines."""
    groups = (
        _time(estimate),
        _throughput(estimate, gpu),
        _caches(estimate, gpu),
        _global_accesses(estimate),
        _shared_accesses(estimate),
        _instructions(estimate),
        _occupancy(estimate, gpu),
        _stalls(estimate),
    )
    return KernelLaunch(
        name=estimate.resources.name,
        grid=estimate.record.grid,
        block=estimate.record.block,
        metrics={str(metric): float(value) for group in groups for metric, value in group.items()} | _guessed(estimate),
        notes=notes(estimate),
        symbol=estimate.record.kernel,
        lines=line_profiles(estimate.record, gpu, lines) if lines else (),
    )


def _guessed(estimate: KernelEstimate) -> dict[str, float]:
    machine = estimate.machine
    return {GUESSED_INSTRUCTIONS: _percent(machine.guessed, machine.instructions)} if machine.guessed else {}


def _time(estimate: KernelEstimate) -> dict[NsightMetric, float]:
    return {
        NsightMetric.DURATION: estimate.duration_s * 1e9,
        NsightMetric.ELAPSED_CYCLES: round(estimate.duration_s * estimate.clock_hz),
    }


def _throughput(estimate: KernelEstimate, gpu: GpuModel) -> dict[NsightMetric, float]:
    """Busy time of units against elapsed or active time; SM units as the mean over SMs, as Nsight does."""
    work, spread = estimate.work_s, estimate.spread
    elapsed, active = estimate.duration_s, estimate.busy_s
    data_stage = work[GpuUnit.LSU]
    lanes = gpu.architecture.lanes
    halves_s, fma_s = (
        warps * WARP_THREADS / wide * spread.share / estimate.clock_hz
        for warps, wide in ((estimate.machine.halves, lanes.halves), (estimate.machine.fma, lanes.fma))
    )
    moved = estimate.dram_read_bytes + _UNASKED_BYTES + estimate.dram_write_bytes
    dram = _percent(moved / gpu.gpu.dram_peak, elapsed)
    l2 = _percent(work[GpuUnit.L2], elapsed)
    pipes = {metric: _percent(work[unit] * spread.balance, active) for metric, unit in _PIPES.items()}
    lsu_s = estimate.machine.lsu * spread.share / estimate.clock_hz
    adu_s = estimate.machine.adu * _ADU_CLOCKS * spread.share / estimate.clock_hz
    return pipes | {
        NsightMetric.PIPE_FMA: _percent(fma_s * spread.balance, active),
        NsightMetric.PIPE_FP16: _percent(halves_s * spread.balance, active),
        NsightMetric.PIPE_LSU: _percent(lsu_s * spread.balance, active),
        NsightMetric.SM_THROUGHPUT: _percent(
            max(lsu_s, adu_s, *(work[unit] for unit in _SM_UNITS)) * spread.balance_of_all, elapsed
        ),
        NsightMetric.DRAM_THROUGHPUT: dram,
        NsightMetric.L2_THROUGHPUT: l2,
        NsightMetric.L1_THROUGHPUT: _percent(data_stage * spread.balance, active),
        NsightMetric.MEMORY_THROUGHPUT: max(
            dram,
            _percent(l2_lookup_bytes(estimate.record, gpu) / gpu.gpu.l2_bandwidth, elapsed),
            _percent(data_stage * spread.balance_of_all, elapsed),
        ),
    }


def _percent(part: float, whole: float) -> float:
    """Share in percent, at most 100: units overlap imperfectly in the model, too."""
    return min(100.0, 100.0 * part / whole)


def _caches(estimate: KernelEstimate, gpu: GpuModel) -> dict[NsightMetric, float]:
    record, through = estimate.record, l2_sectors(estimate.record, gpu, _waves(estimate, gpu))
    found: dict[NsightMetric, float] = {
        NsightMetric.DRAM_READ: estimate.dram_read_bytes + _UNASKED_BYTES,
        NsightMetric.DRAM_WRITE: estimate.dram_write_bytes,
        NsightMetric.L2_READ_SECTORS: through.reads + _UNASKED_READS,
        NsightMetric.L2_WRITE_SECTORS: through.writes,
    }
    atomics = atomic_passes(record)
    asked = through.reads + through.writes + atomics + _UNASKED_READS
    # a write allocates without reading DRAM, which Nsight counts as a hit
    missed = min(through.reads, estimate.dram_read_bytes / SECTOR_BYTES + through.far_reads) + _UNASKED_MISSES
    found[NsightMetric.L2_HIT_RATE] = 100 * (1 - missed / asked)
    accesses = list(record.accesses(DEVICE_SPACES, (Access.LOAD, Access.STORE)))
    sectors = sum(one.sectors for one in accesses)
    if sectors:
        found[NsightMetric.L1_HIT_RATE] = 100 * sum(one.l1_hit_sectors for one in accesses) / sectors
    return found


def _global_accesses(estimate: KernelEstimate) -> dict[NsightMetric, float]:
    record = estimate.record
    loads = list(record.accesses(GLOBAL_SPACES, (Access.LOAD,)))
    stores = list(record.accesses(GLOBAL_SPACES, (Access.STORE,)))
    found: dict[NsightMetric, float] = {
        NsightMetric.GLOBAL_LOAD_REQUESTS: _requests(loads),
        NsightMetric.GLOBAL_LOAD_SECTORS: sum(one.sectors for one in loads),
        NsightMetric.GLOBAL_STORE_REQUESTS: _requests(stores),
        NsightMetric.GLOBAL_STORE_SECTORS: sum(one.sectors for one in stores),
        NsightMetric.GLOBAL_ATOMIC_REQUESTS: _requests(record.accesses(GLOBAL_SPACES, (Access.ATOMIC,))),
        NsightMetric.GLOBAL_REDUCTION_REQUESTS: _requests(record.accesses(GLOBAL_SPACES, (Access.REDUCTION,))),
    }
    for metric, accesses in ((NsightMetric.LOAD_SECTOR_USE, loads), (NsightMetric.STORE_SECTOR_USE, stores)):
        sectors = sum(one.sectors for one in accesses)
        if sectors:
            found[metric] = 100 * sum(_used_bytes(one) for one in accesses) / (sectors * SECTOR_BYTES)
    if in_bulk := bulk_read_sectors(record):
        found[NsightMetric.TMA_READ] = in_bulk * SECTOR_BYTES
    if in_bulk := bulk_written_sectors(record):
        found[NsightMetric.TMA_WRITE] = in_bulk * SECTOR_BYTES
    if record.machine is not None or not estimate.spills:
        found[NsightMetric.LOCAL_LOADS] = _requests(record.accesses((Space.LOCAL,), (Access.LOAD,)))
        found[NsightMetric.LOCAL_STORES] = _requests(record.accesses((Space.LOCAL,), (Access.STORE,)))
    return found


def _used_bytes(one: MemoryInstruction) -> int:
    """Bytes that lanes asked for, at most those of the sectors; lanes that share a word are not told apart."""
    return min(one.lanes * one.bytes_per_lane, one.sectors * SECTOR_BYTES)


def _requests(accesses: Iterable[MemoryInstruction]) -> int:
    return sum(one.requests for one in accesses)


def _shared_accesses(estimate: KernelEstimate) -> dict[NsightMetric, float]:
    record = estimate.record
    every = list(record.accesses((Space.SHARED,), EXECUTED))
    loads, stores = (sum(one.wavefronts for one in every if one.op is op) for op in (Access.LOAD, Access.STORE))
    return {
        NsightMetric.SHARED_WAVEFRONTS: estimate.machine.shared_passes,
        NsightMetric.SHARED_LOAD_WAVEFRONTS: loads,
        NsightMetric.SHARED_STORE_WAVEFRONTS: stores,
        NsightMetric.SHARED_LOAD_CONFLICTS: sum(one.conflicts for one in every if one.op is Access.LOAD),
        NsightMetric.SHARED_STORE_CONFLICTS: sum(one.conflicts for one in every if one.op is Access.STORE),
    }


def _instructions(estimate: KernelEstimate) -> dict[NsightMetric, float]:
    """Machine instructions; divergence as the PTX shows it.

    Branches are left out of the active threads: their predicate says who jumps, and the core counts only those.
    """
    record = estimate.record
    found: dict[NsightMetric, float] = {NsightMetric.INSTRUCTIONS: estimate.machine.instructions}
    warps = record.warp_instructions - record.count("branch")
    if warps:
        threads = record.thread_instructions - record.thread_classes.get("branch", 0)
        found[NsightMetric.THREADS_PER_INSTRUCTION] = threads / warps
    if record.branches:
        found[NsightMetric.BRANCH_UNIFORMITY] = 100 * (1 - record.divergent_branches / record.branches)
    return found


def _occupancy(estimate: KernelEstimate, gpu: GpuModel) -> dict[NsightMetric, float]:
    record, fit = estimate.record, estimate.occupancy
    return {
        NsightMetric.THEORETICAL_OCCUPANCY: 100 * fit.fraction,
        NsightMetric.ACHIEVED_OCCUPANCY: 100 * _achieved_occupancy(estimate),
        NsightMetric.LIMIT_BLOCKS: fit.by_blocks,
        NsightMetric.LIMIT_WARPS: fit.by_warps,
        NsightMetric.LIMIT_REGISTERS: fit.by_registers,
        NsightMetric.LIMIT_SHARED: blocks_by_carve_out(gpu.limits, fit, record.static_shared + record.dynamic_shared),
        NsightMetric.REGISTERS_PER_THREAD: estimate.resources.registers,
        NsightMetric.SHARED_STATIC: record.static_shared,
        NsightMetric.SHARED_DYNAMIC: record.dynamic_shared,
        NsightMetric.SHARED_PER_BLOCK: record.static_shared + record.dynamic_shared + gpu.limits.shared_reserved,
        NsightMetric.GRID_SIZE: record.blocks,
        NsightMetric.BLOCK_SIZE: record.threads_per_block,
        NsightMetric.WAVES: _waves(estimate, gpu),
    }


def _waves(estimate: KernelEstimate, gpu: GpuModel) -> float:
    """Blocks against those that the GPU holds at a time."""
    return estimate.record.blocks / (gpu.gpu.sms * estimate.occupancy.blocks_per_sm)


def _achieved_occupancy(estimate: KernelEstimate) -> float:
    """Warps resident on the SMs that have work, less the idle slots of the last round and between two blocks.

    Schedulers prefer older warps: the more a unit of the SM is contended, the more apart the blocks of a round finish,
    so that slots are idle at the end when no blocks are left to take them. Short blocks are gone before others start.
    """
    spread = estimate.spread
    mean_blocks = spread.busiest_blocks * spread.balance
    resident = min(spread.resident_blocks, mean_blocks)
    rounds = max(1.0, mean_blocks / spread.resident_blocks)
    contended = min(1.0, max(estimate.work_s[unit] for unit in _OWN_UNITS) / estimate.busy_s)
    apart = (_APART_IF_CONTENDED * contended + _APART) * max(0.0, 1 - 1 / resident)
    between_blocks = _BETWEEN_BLOCKS * (spread.rounds - 1)
    idle = min(1.0, between_blocks / (estimate.busy_s * estimate.clock_hz))
    slots = resident * spread.warps_per_block / estimate.occupancy.max_warps
    return slots * rounds / (rounds + apart) * (1 - idle) * estimate.alive_s / estimate.busy_s


def _stalls(estimate: KernelEstimate) -> dict[NsightMetric, float]:
    """Warps waiting per issued instruction: a warp's wait for each cause / its instructions.

    The chain says what a warp waits for when nothing is contended. The rest of its residence is a queue, and goes to
    the cause that the bounding unit produces.
    """
    record, chain, spread = estimate.record, estimate.chain, estimate.spread
    wait = {
        NsightMetric.STALL_LONG_SCOREBOARD: chain.global_memory,
        NsightMetric.STALL_SHORT_SCOREBOARD: chain.short,
        NsightMetric.STALL_BARRIER: chain.barrier,
        NsightMetric.STALL_WAIT: chain.wait,
        NsightMetric.STALL_LG_THROTTLE: 0.0,
        NsightMetric.STALL_MIO_THROTTLE: 0.0,
        NsightMetric.STALL_MATH_THROTTLE: 0.0,
    }
    if record.warpgroup_fma:
        wait[NsightMetric.STALL_GMMA] = chain.products
    residence = estimate.alive_s * estimate.clock_hz / spread.rounds
    queue = _queue_stall(estimate)
    if queue is not None:
        wait[queue] += max(0.0, residence - chain.total)
    per_warp = estimate.machine.instructions / record.warps
    return {metric: clocks / per_warp for metric, clocks in wait.items()}


def _queue_stall(estimate: KernelEstimate) -> NsightMetric | None:
    """Stall reason of the queue in front of the bounding unit; None when it has no name of its own.

    Stores are not waited for until a warp ends.
    """
    if estimate.bound not in (GpuUnit.LSU, GpuUnit.LOOKUP):
        stall = _QUEUE_STALL.get(estimate.bound)
        waits = estimate.chain.global_memory > 0 or stall is not NsightMetric.STALL_LONG_SCOREBOARD
        return stall if waits else None
    shared = sum(one.wavefronts for one in estimate.record.accesses((Space.SHARED,), EXECUTED))
    device = sum(one.requests for one in estimate.record.accesses(DEVICE_SPACES, EXECUTED))
    return NsightMetric.STALL_MIO_THROTTLE if shared > device else NsightMetric.STALL_LG_THROTTLE
