"""Analytic time of one kernel launch, from exact counts and the figures of a GPU.

The model knows units, not instructions in flight. For each unit it asks how long that unit alone would be busy:

    SM units      work on the busiest SM / its rate; the busiest SM has ceil(blocks / SMs) / blocks of all work,
                  which is also how an uneven last wave and a grid smaller than the GPU cost time
    memory units  bytes / bandwidth of the whole GPU
    atomics       passes / rate, or those at 512 bytes one after the other, whichever is more
    latency       (the serial chain of one warp + the start of a block) x rounds of resident blocks on the busiest SM
    launching     blocks x clocks between two starts: the GPU starts them one at a time

Units of one path (memory: DRAM, L2, atomics; inside the SMs: pipes, issue, data stage) form a pipeline, of which the
slowest counts; so do latency and launching. The two paths and the longer of these overlap, but not perfectly:
busy = (sum t_path^p)^(1/p), a smooth maximum, with p larger the more often blocks are replaced.
Each term grows with its counts.

What it does not know: DRAM pages, misses of the TLB, L2 slices, warps of a block that finish at different times, the
order in which blocks of unequal length come, clocks under load. docs/emulator_calibration.md sets it beside an H200: it
ranks kernels and names the bottleneck; what differs by less than its error there, it does not decide. No result of it
may be compared with a measured time. A launch whose blocks fill the GPU more often is taken to overlap its phases
better, so that a smaller launch may be modelled a few percent slower than its share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ptxemu.counters.launch import SECTOR_BYTES, WARP_THREADS, LaunchRecord, MachineCounts
from ptxemu.counters.retries import exchange_clocks
from ptxemu.machine.ptxas import PtxasResources
from ptxemu.model.architecture import Architecture, GpuModel
from ptxemu.model.bulk_copies import clocks_with_copies
from ptxemu.model.chain import Chain, chain_of
from ptxemu.model.expansion import mean_machine_counts
from ptxemu.model.occupancy import Occupancy, occupancy
from ptxemu.model.spread import Spread
from ptxemu.model.traffic import (
    atomic_passes,
    data_stage_clocks,
    dram_bytes,
    filled_bytes,
    l2_bytes,
    lookup_clocks,
    sparse_lines,
)

TENSOR_HALF_CLOCKS = 2
"""Clocks of half-precision arithmetic on one of an SM's tensor cores, as Nsight Compute counts them on an H200."""
NEARLY = 0.9
"""Share of the issue slots' time from which on a pipe is what holds them up."""


class GpuUnit(StrEnum):
    """What can be the bottleneck of a launch."""

    ISSUE = "issue"
    FMA = "fma"
    """Includes half precision and integer multiplication."""
    FMA_HEAVY = "fma_heavy"
    """The half of the FMA pipe that integer multiplication goes through."""
    ALU = "alu"
    FP64 = "fp64"
    XU = "xu"
    TENSOR = "tensor"
    LSU = "lsu"
    """L1 and shared-memory data stage: global requests, shared wavefronts, shuffles."""
    LOOKUP = "lookup"
    """Lines that loads ask the L1 for."""
    L2 = "l2"
    ATOMICS = "atomics"
    DRAM = "dram"
    LATENCY = "latency"
    LAUNCH = "launch"
    """The start of blocks, one after the other."""


_PRINTF_S = 2.4e-6
"""Of a warp that prints with one lane, on an H200 (`print_one_lane_*` of the conformance programs). With 32 lanes it is
13e-6, but lanes that print are not counted."""
_MEMORY = (GpuUnit.DRAM, GpuUnit.L2, GpuUnit.ATOMICS)
_COMPUTE = (GpuUnit.FMA, GpuUnit.FMA_HEAVY, GpuUnit.ALU, GpuUnit.FP64, GpuUnit.XU, GpuUnit.TENSOR, GpuUnit.ISSUE)
_INSIDE = (*_COMPUTE, GpuUnit.LSU, GpuUnit.LOOKUP)
"""Units that each SM has for itself."""


@dataclass(frozen=True)
class KernelEstimate:
    """Modelled execution of one launch; times in seconds.

    Attributes:
        record: the counts it was made from.
        resources: what ptxas reports of the kernel.
        machine: machine instructions, all SMs together.
        occupancy: theoretical.
        spread: how its blocks fall on the SMs.
        work_s: time each unit is busy; of the busiest SM for units inside the SMs.
        busy_s: the launch without start and drain.
        alive_s: the same if blocks started as soon as there is room: what warps take together.
        duration_s: what Nsight Compute would call the kernel's duration.
        dram_read_bytes: bytes read from DRAM.
        dram_write_bytes: bytes it has written that went to DRAM before it ended; the rest is still in the L2 then.
        chain: where a warp's time goes.
        clock_hz: SM clock.
    """

    record: LaunchRecord
    resources: PtxasResources
    machine: MachineCounts
    occupancy: Occupancy
    spread: Spread
    work_s: dict[GpuUnit, float] = field(hash=False)
    busy_s: float
    alive_s: float
    duration_s: float
    dram_read_bytes: float
    dram_write_bytes: float
    chain: Chain
    clock_hz: float

    @property
    def bound(self) -> GpuUnit:
        """The unit that takes longest; a pipe that is nearly as busy before the issue slots that feed it."""
        longest = max(self.work_s, key=self.work_s.__getitem__)
        if longest is not GpuUnit.ISSUE:
            return longest
        pipe = max((unit for unit in _COMPUTE if unit is not GpuUnit.ISSUE), key=self.work_s.__getitem__)
        return pipe if self.work_s[pipe] > NEARLY * self.work_s[longest] else longest

    @property
    def spills(self) -> int:
        """Spill loads and stores of all warps."""
        return round(self.machine.spill_loads + self.machine.spill_stores)


class Unlaunchable(Exception):
    """A launch that a real GPU refuses: one block needs more registers or shared memory than an SM has."""


def estimate(
    record: LaunchRecord,
    resources: PtxasResources,
    gpu: GpuModel,
    *,
    warm_bytes: float = 0.0,
    evicted_bytes: float = 0.0,
) -> KernelEstimate:
    """Model one launch.

    Args:
        record: its counts.
        resources: what ptxas reports of the kernel.
        gpu: the GPU to stand for.
        warm_bytes: bytes it reads that the launch before it left in the L2.
        evicted_bytes: what others have written that it pushes from the L2 to DRAM.

    Raises Unlaunchable when no block fits on an SM.
    """
    if resources.stack_bytes == 0:
        record = record.without_local_memory()
    fit = _fit(record, resources, gpu)
    spread = Spread.of(record.blocks, fit, gpu.gpu.sms)
    machine = record.machine or mean_machine_counts(record, resources)
    record = record.with_spills(machine)
    read_bytes, write_bytes = dram_bytes(record, gpu, warm_bytes, record.blocks / (fit.blocks_per_sm * gpu.gpu.sms))
    chain = chain_of(record, machine, read_bytes, spread.rounds, gpu)
    cycles = _sm_cycles(record, machine, spread, gpu)
    chain_clocks = clocks_with_copies(record, chain.total, read_bytes, gpu)
    cycles[GpuUnit.LATENCY] = _latency_cycles(record, machine, chain_clocks, spread, gpu) + _printing_cycles(
        record, gpu
    )
    cycles[GpuUnit.LAUNCH] = record.blocks * gpu.architecture.timing.block_clocks
    memory = {
        GpuUnit.L2: l2_bytes(record, gpu) / gpu.gpu.l2_bandwidth,
        GpuUnit.ATOMICS: _atomics_s(record, gpu),
        GpuUnit.DRAM: _dram_s(record, read_bytes + write_bytes, gpu),
    }
    evicting_s, clock_hz = evicted_bytes / gpu.gpu.dram_copy, gpu.clock_hz
    busy_s = _overlapping_products if _multiplies_by_warpgroups(record, machine) else _busy_s
    work = memory | {unit: count / clock_hz for unit, count in cycles.items()}
    busy, alive = busy_s(work, evicting_s, spread, fit.max_warps, gpu.architecture)
    if record.tensor_fma or record.warpgroup_fma:
        clock_hz = gpu.clock_under_load(work[GpuUnit.TENSOR] * spread.balance_of_all / busy)
        work = memory | {unit: count / clock_hz for unit, count in cycles.items()}
        busy, alive = busy_s(work, evicting_s, spread, fit.max_warps, gpu.architecture)
    return KernelEstimate(
        record=record,
        resources=resources,
        machine=machine,
        occupancy=fit,
        spread=spread,
        work_s=work,
        busy_s=busy,
        alive_s=alive,
        duration_s=busy + gpu.gpu.kernel_us * 1e-6,
        dram_read_bytes=read_bytes,
        dram_write_bytes=write_bytes,
        chain=chain,
        clock_hz=clock_hz,
    )


def _multiplies_by_warpgroups(record: LaunchRecord, machine: MachineCounts) -> bool:
    """Whether the chain is that of warps that do."""
    return bool(record.warpgroup_fma and machine.path is not None and machine.path.products)


def _printing_cycles(record: LaunchRecord, gpu: GpuModel) -> float:
    """Clocks of all `printf`, which take turns on the whole GPU."""
    return record.operations.get("vprintf", 0) * _PRINTF_S * gpu.clock_hz


def _latency_cycles(
    record: LaunchRecord, machine: MachineCounts, chain_clocks: float, spread: Spread, gpu: GpuModel
) -> float:
    """Rounds of resident blocks, and what the longest warp of the last round takes beyond the mean one.

    Where the chain is that of the warps that multiply, it is that of the longest ones.
    """
    if _multiplies_by_warpgroups(record, machine):
        return (chain_clocks + gpu.architecture.latency.block_start) * spread.rounds
    mean = record.warp_instructions / record.warps
    beyond = max(0.0, record.longest_warp_instructions / mean - 1) if mean else 0.0
    return (chain_clocks + gpu.architecture.latency.block_start) * spread.rounds + chain_clocks * beyond / spread.rounds


def _fit(record: LaunchRecord, resources: PtxasResources, gpu: GpuModel) -> Occupancy:
    shared = record.static_shared + record.dynamic_shared
    fit = occupancy(gpu.limits, threads=record.threads_per_block, registers=resources.registers, shared_bytes=shared)
    if fit.blocks_per_sm == 0:
        raise Unlaunchable(
            f"too many resources requested for launch: {record.threads_per_block} threads of {resources.registers} "
            f"registers and {shared} bytes of shared memory in one block of {record.kernel}"
        )
    return fit


def _busy_s(
    work: Mapping[GpuUnit, float], evicting_s: float, spread: Spread, max_warps: int, architecture: Architecture
) -> tuple[float, float]:
    """Time of the launch without start and drain, with and without the time that starting blocks takes.

    Reads wait for what they evict. The more often blocks are replaced, the more their phases overlap. A warp that has a
    scheduler to itself waits for no other: what its instructions take is in its chain.
    """
    timing = architecture.timing
    memory, inside = (max(work[unit] for unit in path) for path in (_MEMORY, _INSIDE))
    inside /= timing.pipe_share
    contended = inside * (1 - min(1.0, architecture.schedulers / spread.resident_warps))
    norm = timing.norm + (timing.norm_at_once - timing.norm) / spread.fillings(max_warps)
    whole, alive = (
        max(inside, smooth_maximum((memory + evicting_s, contended, latency), norm))
        for latency in (max(work[GpuUnit.LATENCY], work[GpuUnit.LAUNCH]), work[GpuUnit.LATENCY])
    )
    return whole, alive


def _overlapping_products(
    work: Mapping[GpuUnit, float], evicting_s: float, spread: Spread, max_warps: int, architecture: Architecture
) -> tuple[float, float]:
    """As `_busy_s`, of launches with products by warpgroups, whose tiles come while the tiles before are multiplied.

    What the warps of one block make each other wait for is in the chain; blocks of an SM contend beyond it. So much as
    is not hidden behind products is in the chain as well: tensor cores are taken to reach their peak.
    """
    timing = architecture.timing
    memory = max(work[unit] for unit in _MEMORY) + evicting_s
    inside = max(work[unit] / (1.0 if unit is GpuUnit.TENSOR else timing.pipe_share) for unit in _INSIDE)
    contended = inside * (1 - 1 / spread.resident_blocks)
    whole, alive = (
        max(inside, smooth_maximum((memory, contended, latency), timing.norm))
        for latency in (max(work[GpuUnit.LATENCY], work[GpuUnit.LAUNCH]), work[GpuUnit.LATENCY])
    )
    return whole, alive


def smooth_maximum(times: Iterable[float], norm: float) -> float:
    """(sum t^norm)^(1/norm): at least the largest time, and grows with each."""
    values = list(times)
    largest = max(values)
    if largest == 0:
        return 0.0
    grown: float = sum((value / largest) ** norm for value in values) ** (1 / norm)
    return largest * grown


def _sm_cycles(record: LaunchRecord, machine: MachineCounts, spread: Spread, gpu: GpuModel) -> dict[GpuUnit, float]:
    """Clocks that each unit of the busiest SM is busy: warp instructions x 32 lanes / lanes per clock."""
    lanes, halves = gpu.architecture.lanes, min(machine.halves, machine.fma)
    whole = {
        GpuUnit.FMA: _warps_over(machine.fma - halves, lanes.fma) + _warps_over(halves, lanes.halves),
        GpuUnit.FMA_HEAVY: _warps_over(machine.fma_heavy, lanes.fma_integers),
        GpuUnit.ALU: _warps_over(machine.alu, lanes.alu),
        GpuUnit.FP64: _warps_over(record.count("fp64"), lanes.fp64),
        GpuUnit.XU: _warps_over(machine.xu, lanes.xu),
        GpuUnit.TENSOR: record.tensor_fma / gpu.tensor_fma_per_clk
        + record.warpgroup_fma / gpu.warpgroup_fma_per_clk
        + machine.tensor_halves * TENSOR_HALF_CLOCKS / gpu.architecture.schedulers,
        GpuUnit.LSU: data_stage_clocks(record, machine, gpu),
        GpuUnit.LOOKUP: lookup_clocks(record, gpu),
        GpuUnit.ISSUE: machine.instructions / gpu.architecture.schedulers,
    }
    return {unit: count * spread.share for unit, count in whole.items()}


def _warps_over(warp_instructions: float, lanes: float) -> float:
    return warp_instructions * WARP_THREADS / lanes


def _dram_s(record: LaunchRecord, read_and_written: float, gpu: GpuModel) -> float:
    """Time of DRAM, which moves 64 bytes at least: lone sectors that it completes and takes back cost twice theirs."""
    completed = 2 * filled_bytes(record)
    return (read_and_written + (min(2.0, sparse_lines(record)) - 1) * completed) / gpu.gpu.dram_copy


def _atomics_s(record: LaunchRecord, gpu: GpuModel) -> float:
    """Time of all atomics: by the rate of the L2, or one pass after the other where most go to the same 512 bytes; sums
    of floats take longer at one line, and do not hold up other lines."""
    timing = gpu.architecture.timing
    spread = timing.atomic_pass_weight * SECTOR_BYTES * atomic_passes(record) / gpu.gpu.l2_bandwidth
    turns = max(
        record.hottest_atomic_passes * timing.atomic_line_clocks,
        record.hottest_line_passes * timing.atomic_float_clocks if _adds_floats(record) else 0.0,
        exchange_clocks(record),
    )
    return max(spread, turns / gpu.clock_hz)


def _adds_floats(record: LaunchRecord) -> bool:
    """Whether most of its atomics sum floating-point numbers, which takes the L2 longer than integers."""
    atomics = {name: count for name, count in record.operations.items() if name.startswith("atom_")}
    return 2 * sum(count for name, count in atomics.items() if "_f" in name) > sum(atomics.values())
