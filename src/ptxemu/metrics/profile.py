"""Nsight-named metrics of an emulated launch, from its counts and its modelled time.

Counts (sectors, requests, bytes) are exact for the PTX executed; machine instructions follow from the machine code
(`machine/`), or where it is not at hand from the PTX (`model/expansion.py`); hit rates come from the core's cache
model; times and everything relative to time come from `model/`. What neither knows is left out.
Percentages "of active" cycles are against the time without start and drain, those "of elapsed" against all of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import KernelProfile
from ptxemu.counters.record import EXECUTED, SECTOR_BYTES, WARP_THREADS, Access, MemoryInstruction, Space
from ptxemu.metrics.notes import notes
from ptxemu.model.architecture import GpuModel
from ptxemu.model.kernel import KernelEstimate, Unit
from ptxemu.model.traffic import DEVICE_SPACES, GLOBAL_SPACES, atomic_passes, l2_lookup_bytes, l2_sectors

_ADU_CLOCKS = 2
"""Clocks that a warp instruction takes in the ADU of an SM, as `sm__throughput` of an H200 shows."""
_SM_UNITS = (Unit.ISSUE, Unit.FMA, Unit.FMA_HEAVY, Unit.ALU, Unit.FP64, Unit.XU, Unit.TENSOR)
_OWN_UNITS = (*_SM_UNITS, Unit.LSU, Unit.LOOKUP)
"""Units that each SM has for itself."""
_APART, _APART_IF_CONTENDED = 0.05, 0.45
"""Part of a round for which slots are idle at the end, and what a unit that is always busy adds: chosen by the
occupancy that Nsight Compute gave of half of the conformance cases on an H200."""
_BETWEEN_BLOCKS = 450
"""Clocks for which a slot is empty between two blocks: from the occupancy that Nsight Compute gave of plain copies."""
_PIPES = {
    Metric.PIPE_ALU: Unit.ALU,
    Metric.PIPE_FP64: Unit.FP64,
    Metric.PIPE_XU: Unit.XU,
    Metric.PIPE_TENSOR: Unit.TENSOR,
    Metric.ISSUE_ACTIVE: Unit.ISSUE,
}
_QUEUE_STALL = {
    Unit.DRAM: Metric.STALL_LONG_SCOREBOARD,
    Unit.L2: Metric.STALL_LONG_SCOREBOARD,
    Unit.ATOMICS: Metric.STALL_LONG_SCOREBOARD,
    Unit.FMA: Metric.STALL_MATH_THROTTLE,
    Unit.FMA_HEAVY: Metric.STALL_MATH_THROTTLE,
    Unit.ALU: Metric.STALL_MATH_THROTTLE,
    Unit.FP64: Metric.STALL_MATH_THROTTLE,
    Unit.TENSOR: Metric.STALL_MATH_THROTTLE,
    Unit.XU: Metric.STALL_MIO_THROTTLE,
}

COUNTED = frozenset(
    {
        Metric.THREADS_PER_INSTRUCTION,
        Metric.BRANCH_UNIFORMITY,
        Metric.GLOBAL_LOAD_SECTORS,
        Metric.GLOBAL_LOAD_REQUESTS,
        Metric.GLOBAL_STORE_SECTORS,
        Metric.GLOBAL_STORE_REQUESTS,
        Metric.GLOBAL_ATOMIC_REQUESTS,
        Metric.GLOBAL_REDUCTION_REQUESTS,
        Metric.LOAD_SECTOR_USE,
        Metric.STORE_SECTOR_USE,
        Metric.LOCAL_LOADS,
        Metric.LOCAL_STORES,
        Metric.SHARED_WAVEFRONTS,
        Metric.SHARED_LOAD_CONFLICTS,
        Metric.SHARED_STORE_CONFLICTS,
        Metric.THEORETICAL_OCCUPANCY,
        Metric.LIMIT_BLOCKS,
        Metric.LIMIT_WARPS,
        Metric.LIMIT_REGISTERS,
        Metric.LIMIT_SHARED,
        Metric.REGISTERS_PER_THREAD,
        Metric.SHARED_STATIC,
        Metric.SHARED_DYNAMIC,
        Metric.SHARED_PER_BLOCK,
        Metric.GRID_SIZE,
        Metric.BLOCK_SIZE,
        Metric.WAVES,
    }
)
"""Metrics that are counted or follow from the launch; every other one rests on a model of ptxas, caches or time."""


def kernel_profile(estimate: KernelEstimate, gpu: GpuModel) -> KernelProfile:
    """One launch as Nsight Compute would show it."""
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
    return KernelProfile(
        name=estimate.resources.name,
        grid=estimate.record.grid,
        block=estimate.record.block,
        metrics={str(metric): float(value) for group in groups for metric, value in group.items()},
        notes=notes(estimate),
    )


def _time(estimate: KernelEstimate) -> dict[Metric, float]:
    return {
        Metric.DURATION: estimate.duration_s * 1e9,
        Metric.ELAPSED_CYCLES: round(estimate.duration_s * estimate.clock_hz),
    }


def _throughput(estimate: KernelEstimate, gpu: GpuModel) -> dict[Metric, float]:
    """Busy time of units against elapsed or active time; SM units as the mean over SMs, as Nsight does."""
    work, spread = estimate.work_s, estimate.spread
    elapsed, active = estimate.duration_s, estimate.busy_s
    data_stage = work[Unit.LSU]
    lanes = gpu.architecture.lanes
    halves_s, fma_s = (
        warps * WARP_THREADS / wide * spread.share / estimate.clock_hz
        for warps, wide in ((estimate.machine.halves, lanes.halves), (estimate.machine.fma, lanes.fma))
    )
    dram = _percent((estimate.dram_read_bytes + estimate.dram_write_bytes) / gpu.gpu.dram_peak, elapsed)
    l2 = _percent(work[Unit.L2], elapsed)
    pipes = {metric: _percent(work[unit] * spread.balance, active) for metric, unit in _PIPES.items()}
    lsu_s = estimate.machine.lsu * spread.share / estimate.clock_hz
    adu_s = estimate.machine.adu * _ADU_CLOCKS * spread.share / estimate.clock_hz
    return pipes | {
        Metric.PIPE_FMA: _percent(fma_s * spread.balance, active),
        Metric.PIPE_FP16: _percent(halves_s * spread.balance, active),
        Metric.PIPE_LSU: _percent(lsu_s * spread.balance, active),
        Metric.SM_THROUGHPUT: _percent(
            max(lsu_s, adu_s, *(work[unit] for unit in _SM_UNITS)) * spread.balance_of_all, elapsed
        ),
        Metric.DRAM_THROUGHPUT: dram,
        Metric.L2_THROUGHPUT: l2,
        Metric.L1_THROUGHPUT: _percent(data_stage * spread.balance, active),
        Metric.MEMORY_THROUGHPUT: max(
            dram,
            _percent(l2_lookup_bytes(estimate.record, gpu) / gpu.gpu.l2_bandwidth, elapsed),
            _percent(data_stage * spread.balance_of_all, elapsed),
        ),
    }


def _percent(part: float, whole: float) -> float:
    """Share in percent, at most 100: units overlap imperfectly in the model, too."""
    return min(100.0, 100.0 * part / whole)


def _caches(estimate: KernelEstimate, gpu: GpuModel) -> dict[Metric, float]:
    record, through = estimate.record, l2_sectors(estimate.record, gpu)
    found: dict[Metric, float] = {
        Metric.DRAM_READ: estimate.dram_read_bytes,
        Metric.DRAM_WRITE: estimate.dram_write_bytes,
        Metric.L2_READ_SECTORS: through.reads,
        Metric.L2_WRITE_SECTORS: through.writes,
    }
    atomics = atomic_passes(record)
    asked = through.reads + through.writes + atomics
    if asked:
        # a write allocates without reading DRAM, which Nsight counts as a hit
        missed = min(through.reads, estimate.dram_read_bytes / SECTOR_BYTES + through.far_reads)
        found[Metric.L2_HIT_RATE] = 100 * (1 - missed / asked)
    accesses = list(record.accesses(DEVICE_SPACES, (Access.LOAD, Access.STORE)))
    sectors = sum(one.sectors for one in accesses)
    if sectors:
        found[Metric.L1_HIT_RATE] = 100 * sum(one.l1_hit_sectors for one in accesses) / sectors
    return found


def _global_accesses(estimate: KernelEstimate) -> dict[Metric, float]:
    record = estimate.record
    loads = list(record.accesses(GLOBAL_SPACES, (Access.LOAD,)))
    stores = list(record.accesses(GLOBAL_SPACES, (Access.STORE,)))
    found: dict[Metric, float] = {
        Metric.GLOBAL_LOAD_REQUESTS: _requests(loads),
        Metric.GLOBAL_LOAD_SECTORS: sum(one.sectors for one in loads),
        Metric.GLOBAL_STORE_REQUESTS: _requests(stores),
        Metric.GLOBAL_STORE_SECTORS: sum(one.sectors for one in stores),
        Metric.GLOBAL_ATOMIC_REQUESTS: _requests(record.accesses(GLOBAL_SPACES, (Access.ATOMIC,))),
        Metric.GLOBAL_REDUCTION_REQUESTS: _requests(record.accesses(GLOBAL_SPACES, (Access.REDUCTION,))),
    }
    for metric, accesses in ((Metric.LOAD_SECTOR_USE, loads), (Metric.STORE_SECTOR_USE, stores)):
        sectors = sum(one.sectors for one in accesses)
        if sectors:
            found[metric] = 100 * sum(_used_bytes(one) for one in accesses) / (sectors * SECTOR_BYTES)
    if record.machine is not None or not estimate.spills:
        found[Metric.LOCAL_LOADS] = _requests(record.accesses((Space.LOCAL,), (Access.LOAD,)))
        found[Metric.LOCAL_STORES] = _requests(record.accesses((Space.LOCAL,), (Access.STORE,)))
    return found


def _used_bytes(one: MemoryInstruction) -> int:
    """Bytes that lanes asked for, at most those of the sectors; lanes that share a word are not told apart."""
    return min(one.lanes * one.bytes_per_lane, one.sectors * SECTOR_BYTES)


def _requests(accesses: Iterable[MemoryInstruction]) -> int:
    return sum(one.requests for one in accesses)


def _shared_accesses(estimate: KernelEstimate) -> dict[Metric, float]:
    record = estimate.record
    every = list(record.accesses((Space.SHARED,), EXECUTED))
    return {
        Metric.SHARED_WAVEFRONTS: estimate.machine.shared_passes,
        Metric.SHARED_LOAD_CONFLICTS: sum(one.conflicts for one in every if one.op is Access.LOAD),
        Metric.SHARED_STORE_CONFLICTS: sum(one.conflicts for one in every if one.op is Access.STORE),
    }


def _instructions(estimate: KernelEstimate) -> dict[Metric, float]:
    """Machine instructions; divergence as the PTX shows it.

    Branches are left out of the active threads: their predicate says who jumps, and the core counts only those.
    """
    record = estimate.record
    found: dict[Metric, float] = {Metric.INSTRUCTIONS: estimate.machine.instructions}
    warps = record.warp_instructions - record.count("branch")
    if warps:
        threads = record.thread_instructions - record.thread_classes.get("branch", 0)
        found[Metric.THREADS_PER_INSTRUCTION] = threads / warps
    if record.branches:
        found[Metric.BRANCH_UNIFORMITY] = 100 * (1 - record.divergent_branches / record.branches)
    return found


def _occupancy(estimate: KernelEstimate, gpu: GpuModel) -> dict[Metric, float]:
    record, fit = estimate.record, estimate.occupancy
    slots = gpu.gpu.sms * fit.blocks_per_sm
    return {
        Metric.THEORETICAL_OCCUPANCY: 100 * fit.fraction,
        Metric.ACHIEVED_OCCUPANCY: 100 * _achieved_occupancy(estimate),
        Metric.LIMIT_BLOCKS: fit.by_blocks,
        Metric.LIMIT_WARPS: fit.by_warps,
        Metric.LIMIT_REGISTERS: fit.by_registers,
        Metric.LIMIT_SHARED: fit.by_shared,
        Metric.REGISTERS_PER_THREAD: estimate.resources.registers,
        Metric.SHARED_STATIC: record.static_shared,
        Metric.SHARED_DYNAMIC: record.dynamic_shared,
        Metric.SHARED_PER_BLOCK: record.static_shared + record.dynamic_shared + gpu.limits.shared_reserved,
        Metric.GRID_SIZE: record.blocks,
        Metric.BLOCK_SIZE: record.threads_per_block,
        Metric.WAVES: record.blocks / slots,
    }


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


def _stalls(estimate: KernelEstimate) -> dict[Metric, float]:
    """Warps waiting per issued instruction: a warp's wait for each cause / its instructions.

    The chain says what a warp waits for when nothing is contended. The rest of its residence is a queue, and goes to
    the cause that the bounding unit produces.
    """
    record, chain, spread = estimate.record, estimate.chain, estimate.spread
    wait = {
        Metric.STALL_LONG_SCOREBOARD: chain.global_memory,
        Metric.STALL_SHORT_SCOREBOARD: chain.short,
        Metric.STALL_BARRIER: chain.barrier,
        Metric.STALL_WAIT: chain.wait,
        Metric.STALL_LG_THROTTLE: 0.0,
        Metric.STALL_MIO_THROTTLE: 0.0,
        Metric.STALL_MATH_THROTTLE: 0.0,
    }
    residence = estimate.alive_s * estimate.clock_hz / spread.rounds
    queue = _queue_stall(estimate)
    if queue is not None:
        wait[queue] += max(0.0, residence - chain.total)
    per_warp = estimate.machine.instructions / record.warps
    return {metric: clocks / per_warp for metric, clocks in wait.items()}


def _queue_stall(estimate: KernelEstimate) -> Metric | None:
    """Stall reason of the queue in front of the bounding unit; None when it has no name of its own.

    Stores are not waited for until a warp ends.
    """
    if estimate.bound not in (Unit.LSU, Unit.LOOKUP):
        stall = _QUEUE_STALL.get(estimate.bound)
        waits = estimate.chain.global_memory > 0 or stall is not Metric.STALL_LONG_SCOREBOARD
        return stall if waits else None
    shared = sum(one.wavefronts for one in estimate.record.accesses((Space.SHARED,), EXECUTED))
    device = sum(one.requests for one in estimate.record.accesses(DEVICE_SPACES, EXECUTED))
    return Metric.STALL_MIO_THROTTLE if shared > device else Metric.STALL_LG_THROTTLE
