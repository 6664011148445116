"""Analytic time of one kernel launch, from exact counts and the figures of a GPU.

The model knows units, not instructions in flight. For each unit it asks how long that unit alone would be busy:

    SM units      work on the busiest SM / its rate; the busiest SM has ceil(blocks / SMs) / blocks of all work,
                  which is also how an uneven last wave and a grid smaller than the GPU cost time
    memory units  bytes / bandwidth of the whole GPU
    latency       (the serial chain of one warp + the start of a block) x rounds of resident blocks on the busiest SM

Units of one path (memory: DRAM, L2, the SM's port; compute: pipes and issue; data stage; latency) form a pipeline, of
which the slowest counts. The paths overlap, but not perfectly: busy = (sum t_path^3)^(1/3), a smooth maximum.
Each term grows with its counts, so a launch that does less of everything is never modelled slower.

What it does not know: ptxas' scheduling (a warp is assumed to keep `MEMORY_PARALLELISM` loads in flight), DRAM pages,
L2 slices, phases in which all blocks do the same, clocks under load. Against five kernels that Nsight Compute timed
on an H200 it was 0.6 to 1.1 of the truth: it ranks large differences and names the bottleneck; below about 30 % it
decides nothing. No result of it may be compared with a measured time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from kernelblaster.devices.base import KernelResources
from kernelblaster.devices.emulated.architecture import GpuModel
from kernelblaster.devices.emulated.record import SECTOR_BYTES, Access, LaunchRecord, MemoryInstruction, Space
from kernelblaster.devices.emulated.spread import Spread
from kernelblaster.devices.occupancy import WARP_THREADS, Occupancy, occupancy

MEMORY_PARALLELISM = 4.0
"""Loads of one warp in flight together: nvcc unrolls simple loops by four."""
SHARED_PARALLELISM = 8.0
"""Shared-memory loads of one warp in flight together: inner loops over a tile are unrolled further."""
ARITHMETIC_PARALLELISM = 2.0
"""Independent arithmetic instructions of one warp."""
NORM = 3.0
"""Exponent of the smooth maximum over paths."""
L2_SHARE = 0.8
"""Share of the L2 that data stays in under real replacement."""
WRITTEN_FOOTPRINT_SHARE = 0.67
"""Share of the L2 that a launch may touch before lines it has written go to DRAM while it runs."""
DIRTY_SHARE = 0.51
"""Share of the L2 that written lines may take."""
WRITE_BACK_NORM = 4.0
"""How sharply the write-back begins."""
REQUEST_CYCLES = 2.0
"""Least cycles of the load/store unit per global request: addresses of 32 lanes, 16 a clock."""
DIVIDE_STEPS = 8
"""SASS instructions of an IEEE float division or square root, beyond its own."""
INTEGER_DIVIDE_STEPS = 20
"""SASS instructions of an integer division or remainder."""
ATOMIC_BYTES = 64
"""L2 traffic that one lane's atomic takes the place of."""

_DEVICE_SPACES = (Space.GLOBAL, Space.GENERIC, Space.LOCAL)


class Unit(StrEnum):
    """What can be the bottleneck of a launch."""

    ISSUE = "issue"
    FMA = "fma"
    ALU = "alu"
    FP16 = "fp16"
    FP64 = "fp64"
    XU = "xu"
    CONVERT = "convert"
    TENSOR = "tensor"
    LSU = "lsu"
    """L1 and shared-memory data stage: global requests, shared wavefronts, shuffles."""
    L2_PORT = "l2_port"
    L2 = "l2"
    ATOMICS = "atomics"
    DRAM = "dram"
    LATENCY = "latency"


_PATHS = (
    (Unit.DRAM, Unit.L2, Unit.L2_PORT, Unit.ATOMICS),
    (Unit.FMA, Unit.ALU, Unit.FP16, Unit.FP64, Unit.XU, Unit.CONVERT, Unit.TENSOR, Unit.ISSUE),
    (Unit.LSU,),
    (Unit.LATENCY,),
)


@dataclass(frozen=True)
class Chain:
    """Clocks that one warp waits, by cause, when nothing is contended."""

    global_memory: float
    short: float
    """Shared memory, shuffles and the transcendental unit."""
    barrier: float
    arithmetic: float

    @property
    def total(self) -> float:
        """Clocks from a warp's first instruction to its last."""
        return self.global_memory + self.short + self.barrier + self.arithmetic


@dataclass(frozen=True)
class KernelEstimate:
    """Modelled execution of one launch; times in seconds.

    Attributes:
        record: the counts it was made from.
        resources: what ptxas reports of the kernel.
        occupancy: theoretical.
        spread: how its blocks fall on the SMs.
        work_s: time each unit is busy; of the busiest SM for units inside the SMs.
        busy_s: the launch without start and drain.
        duration_s: what Nsight Compute would call the kernel's duration.
        dram_read_bytes: bytes read from DRAM.
        dram_write_bytes: bytes written to DRAM before the launch ends; the rest is still in the L2 then.
        chain: where a warp's time goes.
        clock_hz: SM clock.
    """

    record: LaunchRecord
    resources: KernelResources
    occupancy: Occupancy
    spread: Spread
    work_s: dict[Unit, float] = field(hash=False)
    busy_s: float
    duration_s: float
    dram_read_bytes: float
    dram_write_bytes: float
    chain: Chain
    clock_hz: float

    @property
    def bound(self) -> Unit:
        """The unit that takes longest; a pipe before the issue slots that feed it."""
        return max(self.work_s, key=self.work_s.__getitem__)

    @property
    def spills(self) -> int:
        """Spill loads and stores of all warps, each taken to be executed once per warp."""
        return spill_instructions(self.resources) * self.record.warps


class Unlaunchable(Exception):
    """A launch that a real GPU refuses: one block needs more registers or shared memory than an SM has."""


def estimate(
    record: LaunchRecord, resources: KernelResources, gpu: GpuModel, *, warm_bytes: float = 0.0
) -> KernelEstimate:
    """Model one launch.

    Args:
        record: its counts.
        resources: what ptxas reports of the kernel.
        gpu: the GPU to stand for.
        warm_bytes: bytes it reads that the launch before it left in the L2.

    Raises Unlaunchable when no block fits on an SM.
    """
    fit = _fit(record, resources, gpu)
    spread = Spread.of(record.blocks, fit, gpu.gpu.sms)
    read_bytes, write_bytes = _dram_bytes(record, gpu, warm_bytes)
    chain = _chain(record, resources, read_bytes, gpu)
    cycles = _sm_cycles(record, resources, spread, gpu)
    cycles[Unit.LATENCY] = (chain.total + gpu.architecture.latency.block_start) * spread.rounds
    work = {unit: count / gpu.clock_hz for unit, count in cycles.items()}
    work[Unit.L2] = record.l2_bytes / gpu.gpu.l2_bandwidth
    work[Unit.ATOMICS] = _atomic_lanes(record) * ATOMIC_BYTES / gpu.gpu.l2_bandwidth
    work[Unit.DRAM] = (read_bytes + write_bytes) / gpu.gpu.dram_copy
    hidden = {unit: count / gpu.clock_hz for unit, count in _hidden_cycles(record, spread, gpu).items()}
    busy = smooth_maximum(max(work[unit] - hidden.get(unit, 0.0) for unit in path) for path in _PATHS)
    return KernelEstimate(
        record=record,
        resources=resources,
        occupancy=fit,
        spread=spread,
        work_s=work,
        busy_s=busy,
        duration_s=busy + gpu.gpu.kernel_us * 1e-6,
        dram_read_bytes=read_bytes,
        dram_write_bytes=write_bytes,
        chain=chain,
        clock_hz=gpu.clock_hz,
    )


def _fit(record: LaunchRecord, resources: KernelResources, gpu: GpuModel) -> Occupancy:
    shared = record.static_shared + record.dynamic_shared
    fit = occupancy(gpu.limits, threads=record.threads_per_block, registers=resources.registers, shared_bytes=shared)
    if fit.blocks_per_sm == 0:
        raise Unlaunchable(
            f"too many resources requested for launch: {record.threads_per_block} threads of {resources.registers} "
            f"registers and {shared} bytes of shared memory in one block of {record.kernel}"
        )
    return fit


def spill_instructions(resources: KernelResources) -> int:
    """Spill loads and stores in the code, four bytes each."""
    return (resources.spill_load_bytes + resources.spill_store_bytes) // 4


def smooth_maximum(times: Iterable[float]) -> float:
    """(sum t^p)^(1/p): at least the largest time, and grows with each."""
    values = list(times)
    largest = max(values)
    if largest == 0:
        return 0.0
    return largest * sum((value / largest) ** NORM for value in values) ** (1 / NORM)


def _sm_cycles(record: LaunchRecord, resources: KernelResources, spread: Spread, gpu: GpuModel) -> dict[Unit, float]:
    """Clocks that each unit of the busiest SM is busy: warp instructions x 32 lanes / lanes per clock."""
    lanes = gpu.architecture.lanes
    fdiv, idiv = record.count("fdiv"), record.count("idiv")
    steps = DIVIDE_STEPS * fdiv + INTEGER_DIVIDE_STEPS * idiv
    # ptxas removes nearly every mov, and parameters become constant-bank operands
    issued = record.warp_instructions - record.count("mov", "ld_param", "ld_const") + steps
    whole = {
        Unit.FMA: _warps_over(record.count("fp32", "ffma") + DIVIDE_STEPS * fdiv, lanes.fma)
        + _warps_over(record.count("imad"), lanes.alu),
        Unit.ALU: _warps_over(record.count("int", "alu") + INTEGER_DIVIDE_STEPS * idiv, lanes.alu),
        Unit.FP16: _warps_over(record.count("fp16"), lanes.fp16),
        Unit.FP64: _warps_over(record.count("fp64"), lanes.fp64),
        Unit.XU: _warps_over(record.count("xu", "fdiv"), lanes.xu),
        Unit.CONVERT: _warps_over(record.count("cvt"), lanes.convert),
        Unit.TENSOR: record.tensor_fma / gpu.tensor_fma_per_clk,
        Unit.LSU: _lsu_cycles(record, resources, gpu),
        Unit.L2_PORT: _port_cycles(sum(_missed(one) for one in _plain_accesses(record)), gpu),
        Unit.ISSUE: issued / gpu.architecture.schedulers,
    }
    return {unit: count * spread.share for unit, count in whole.items()}


def _warps_over(warp_instructions: float, lanes: float) -> float:
    return warp_instructions * WARP_THREADS / lanes


def _lsu_cycles(record: LaunchRecord, resources: KernelResources, gpu: GpuModel) -> float:
    """Data-stage clocks of all SMs: global requests with their extra passes, shared wavefronts, shuffles, spills."""
    device = sum(_request_cycles(one, one.sectors) for one in _plain_accesses(record))
    shared = sum(max(one.wavefronts, one.requests) for one in record.memory if one.space is Space.SHARED)
    shuffles = _warps_over(record.count("shfl"), gpu.architecture.lanes.shuffle)
    spills = REQUEST_CYCLES * spill_instructions(resources) * record.warps
    return device + shared + shuffles + spills


def _hidden_cycles(record: LaunchRecord, spread: Spread, gpu: GpuModel) -> dict[Unit, float]:
    """Clocks of the busiest SM that cost no time of their own.

    The perfectly coalesced part of each resident warp's first request moves while that warp waits for it, which the
    latency term already has. Without this, a few wide accesses would seem to take longer than many narrow ones.
    """
    lsu = port = 0.0
    for one in _plain_accesses(record):
        first = _first_round(one, spread)
        ideal = min(one.ideal_sectors, one.sectors)
        lsu += first * min(_request_cycles(one, ideal), _request_cycles(one, one.sectors))
        port += first * min(ideal, _missed(one))
    return {Unit.LSU: lsu * spread.share, Unit.L2_PORT: _port_cycles(port, gpu) * spread.share}


def _first_round(one: MemoryInstruction, spread: Spread) -> float:
    """Part of an instruction's requests that are the first of a resident warp."""
    requests = one.requests * spread.share
    return min(1.0, spread.resident_warps / requests) if requests > 0 else 0.0


def _request_cycles(one: MemoryInstruction, sectors: int) -> float:
    """Address generation, or one 128-byte line (four sectors) a clock, whichever is more."""
    passes = one.wavefronts if sectors > one.ideal_sectors else 0
    return max(REQUEST_CYCLES * one.requests, sectors / 4, passes)


def _port_cycles(sectors: float, gpu: GpuModel) -> float:
    return sectors * SECTOR_BYTES / gpu.architecture.l2_port_bytes_per_clk


def _plain_accesses(record: LaunchRecord) -> Iterator[MemoryInstruction]:
    return record.accesses(_DEVICE_SPACES, (Access.LOAD, Access.STORE))


def _missed(one: MemoryInstruction) -> int:
    return one.sectors - one.l1_hit_sectors


def _atomic_lanes(record: LaunchRecord) -> int:
    return sum(one.lanes for one in record.accesses((Space.GLOBAL, Space.GENERIC), (Access.ATOMIC, Access.REDUCTION)))


def _dram_bytes(record: LaunchRecord, gpu: GpuModel, warm_bytes: float) -> tuple[float, float]:
    """DRAM bytes read and written: what is touched at least once, plus re-reads that outgrow the L2.

    Re-use is lost in proportion to how far the footprint exceeds the L2: (1 - L2 / footprint). A lone sector read
    again costs the 64 bytes that DRAM moves at least, in proportion to how sparse the loads are. Writes to one sector
    are taken to meet in the L2. Of what is written, the L2 keeps what fits its share,
    (1 + (footprint / share)^p)^(-1/p), at most the lines that may be dirty.
    """
    kept = gpu.gpu.l2_bytes * L2_SHARE
    lost = max(0.0, 1 - kept / record.unique_bytes) if record.unique_bytes else 0.0
    read_again = max(0, record.l2_read_sectors * SECTOR_BYTES - record.unique_read_bytes)
    first_read = max(0.0, record.unique_read_bytes - warm_bytes)
    written = record.unique_write_bytes - _kept_dirty(record, gpu)
    return first_read + lost * read_again * _granule_waste(record), written


def _kept_dirty(record: LaunchRecord, gpu: GpuModel) -> float:
    """Bytes that the launch has written and leaves in the L2."""
    room, dirty = (gpu.gpu.l2_bytes * share for share in (WRITTEN_FOOTPRINT_SHARE, DIRTY_SHARE))
    kept = record.unique_write_bytes * _smooth_room(record.unique_bytes / room)
    return kept * _smooth_room(kept / dirty)


def _smooth_room(filled: float) -> float:
    """min(1, 1 / filled) with the corner rounded."""
    return (1 + filled**WRITE_BACK_NORM) ** (-1 / WRITE_BACK_NORM)


def _granule_waste(record: LaunchRecord) -> float:
    loads = list(record.accesses(_DEVICE_SPACES, (Access.LOAD,)))
    sectors = sum(one.sectors for one in loads)
    ideal = sum(min(one.ideal_sectors, one.sectors) for one in loads)
    return 2 - ideal / sectors if sectors else 1.0


def _chain(record: LaunchRecord, resources: KernelResources, dram_read_bytes: float, gpu: GpuModel) -> Chain:
    """Clocks one average warp waits: instructions per warp x latency / how many overlap."""
    latency = gpu.architecture.latency
    warps = record.warps
    loads = list(record.accesses(_DEVICE_SPACES, (Access.LOAD,)))
    atomics = sum(one.requests for one in record.accesses((Space.GLOBAL, Space.GENERIC), (Access.ATOMIC,)))
    shared = sum(one.requests for one in record.accesses((Space.SHARED,), tuple(Access)))
    arithmetic = record.count("fp32", "ffma", "fp16", "fp64", "int", "imad", "alu", "cvt", "branch", "tensor")
    steps = DIVIDE_STEPS * record.count("fdiv") + INTEGER_DIVIDE_STEPS * record.count("idiv")
    return Chain(
        global_memory=_overlapped(sum(one.requests for one in loads) / warps, MEMORY_PARALLELISM)
        * _load_latency(loads, dram_read_bytes, gpu)
        + atomics / warps * latency.atomic
        + _overlapped(spill_instructions(resources), MEMORY_PARALLELISM) * latency.l1,
        short=_overlapped(shared / warps, SHARED_PARALLELISM) * latency.shared
        + record.count("shfl") / warps * latency.shuffle
        + _overlapped(record.count("xu", "fdiv") / warps, ARITHMETIC_PARALLELISM) * latency.xu,
        barrier=record.count("bar") / warps * latency.barrier,
        arithmetic=_overlapped((arithmetic + steps) / warps, ARITHMETIC_PARALLELISM) * latency.alu,
    )


def _overlapped(count: float, parallelism: float) -> float:
    """Latencies paid one after the other for `count` instructions, `parallelism` of which overlap; one at least."""
    return max(min(count, 1.0), count / parallelism)


def _load_latency(loads: list[MemoryInstruction], dram_read_bytes: float, gpu: GpuModel) -> float:
    """Mean latency of a load: L1 hits by their share of the sectors, the rest from L2 or DRAM.

    A request waits for its slowest sector, so DRAM sectors are held against those that dense requests would need.
    """
    latency = gpu.architecture.latency
    sectors = sum(one.sectors for one in loads)
    if sectors == 0:
        return latency.l2
    l1_hits = sum(one.l1_hit_sectors for one in loads) / sectors
    dense = sum(min(_missed(one), one.ideal_sectors) for one in loads)
    from_dram = min(1.0, dram_read_bytes / SECTOR_BYTES / dense) if dense else 0.0
    return l1_hits * latency.l1 + (1 - l1_hits) * (from_dram * latency.dram + (1 - from_dram) * latency.l2)
