"""The GPUs that the emulated device can stand for, read from `architectures.json`.

A GPU is its own figures (SMs, clock, DRAM, L2) on top of those of its architecture (pipes, latencies). Each entry
says where its figures come from. No formula lives here: those are in `kernel.py`.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Literal

from ptxemu.counters.launch import WARP_THREADS
from ptxemu.decoding import decode
from ptxemu.errors import InvalidInput
from ptxemu.model.attributes import attribute_numbers, attribute_values
from ptxemu.model.occupancy import SmLimits, sm_limits

DEFAULT_GPU = "h200"
_FULL_EFFECT = 0.03
"""Share of the clocks for which tensor cores are busy from which on the clock is that of their use: the least among the
captured launches on an H200 that use them, which had it."""
_MAY_BE_ZERO = (
    "block_clocks",
    "l1_under_way",
    "doubling_clocks",
    "line_clocks",
    "conflict_clocks",
    "passes_per_fill",
    "store_line_clocks",
    "l2_written_line_weight",
)
"""Weights that switch off what they weigh."""


def _require_positive(figures: object, *, or_zero: Collection[str] = ()) -> None:
    """Raise ValueError for a number of a dataclass that is negative, or zero where that makes no sense."""
    for name, value in vars(figures).items():
        if isinstance(value, int | float) and (value < 0 or (value == 0 and name not in or_zero)):
            raise ValueError(f"{type(figures).__name__}.{name} is {value}")


@dataclass(frozen=True)
class Lanes:
    """Results per clock and SM of each pipe; `fma` has half precision, with `halves` pairs, and integer multiplication,
    which only the part `fma_integers` of its lanes has."""

    fma: float
    fma_integers: float
    halves: float
    alu: float
    fp64: float
    xu: float

    def __post_init__(self) -> None:
        _require_positive(self)


@dataclass(frozen=True)
class Latency:
    """Clocks from issue to result."""

    alu: float
    double: float
    tensor: float
    division: float
    """A division or root that ptxas expands into many instructions."""
    xu: float
    shuffle: float
    shared: float
    barrier: float
    block_start: float
    """From the end of one block to the first instruction of the block that takes its place."""
    l1: float
    l2: float
    """Of sectors that are there."""
    dram: float
    atomic: float
    constant: float
    """Of a constant at an address that is computed."""
    special_register: float
    """Of a special register."""
    operands: float
    """Until a store has read what it stores."""
    branch: float

    def __post_init__(self) -> None:
        _require_positive(self)


@dataclass(frozen=True)
class TimingWeights:
    """How the parts of the timing model weigh; see `chain.py`, `traffic.py` and `kernel.py`."""

    norm: float
    """Exponent of the smooth maximum over paths where blocks are replaced many times."""
    norm_at_once: float
    """The same where all blocks begin together: they load, compute and store at the same times."""
    pipe_share: float
    """Share of its peak that the busiest unit of an SM reaches under load."""
    instruction_clocks: float
    """Clocks for which each machine instruction holds its warp."""
    block_clocks: float
    """SM clocks between the starts of two blocks, anywhere on the GPU, when blocks are short."""
    reads_under_way: float
    """Reads of one sector by several SMs that find it on its way from DRAM and wait as long as the first."""
    l1_under_way: float
    """Share of the hits in the L1 on lines of other warps that find them on their way and wait as long as those."""
    doubling_clocks: float
    """Clocks by which the slowest line comes later from DRAM when a load touches twice as many as its bytes fill."""
    line_clocks: float
    """Clocks that a warp takes for each 128-byte line of a load beyond those that its bytes fill."""
    conflict_clocks: float
    """Clocks that each further pass of a shared-memory request adds to its latency."""
    spills_in_flight: float
    """Spilled registers that a warp loads back together."""
    passes_per_line: float
    """Passes through the data stage for each line of a request beyond those that its bytes fill."""
    passes_per_fill: float
    """The same for each sector that the L2 brings."""
    store_sector_clocks: float
    """Clocks of the data stage for each sector that is stored."""
    store_line_clocks: float
    """The same for each line that a store writes to."""
    lines_per_clk: float
    """Lines that an L1 looks up per clock."""
    l2_miss_weight: float
    """Time in the L2 of a sector that DRAM has to bring, against 32 bytes at its bandwidth."""
    l2_line_weight: float
    """The same of each line that a load looks up."""
    l2_write_weight: float
    """The same of each sector written."""
    l2_written_line_weight: float
    """The same of each line that a store writes to."""
    atomic_pass_weight: float
    """The same of each pass of an atomic."""
    atomic_line_clocks: float
    """SM clocks between two passes of atomics at the same 512 bytes."""
    atomic_float_clocks: float
    """The same of sums of floats."""

    def __post_init__(self) -> None:
        _require_positive(self, or_zero=_MAY_BE_ZERO)
        if min(self.norm, self.norm_at_once) <= 1 or self.pipe_share > 1:
            raise ValueError(f"norms are above 1, shares at most 1: {self}")


@dataclass(frozen=True)
class Architecture:
    """What all GPUs of one compute capability share."""

    compile_arch: str
    """What nvcc is given."""
    l1_bytes: int
    """L1 cache and shared memory of one SM together."""
    schedulers: int
    """Warp instructions issued per clock and SM."""
    lanes: Lanes
    mma_fraction: float
    """Share of the tensor cores' peak that `mma.sync` and `wmma` reach."""
    latency: Latency
    timing: TimingWeights
    l2_partitions: Literal[1, 2]
    """Halves of the L2; with two, half of all sectors come from the far one and pass through the near one, too."""
    coalesced_sms: float
    """SMs, on average, of which one asks the L2 for a sector that all of them want at a time; 1 where not known."""
    source: str

    def __post_init__(self) -> None:
        _require_positive(self)
        if self.mma_fraction > 1:
            raise ValueError(f"mma_fraction is a share, not {self.mma_fraction}")


@dataclass(frozen=True)
class Gpu:
    """One product."""

    name: str
    arch: str
    sms: int
    clock_mhz: float
    peak_clock_mhz: float
    """SM clock at which the data sheet's FLOP/s hold."""
    tensor_clock_mhz: float
    """SM clock when tensor cores are at work, next to nothing else said; at most `clock_mhz`."""
    tensor_load_mhz: float
    """What the SM clock loses beyond that when they never rest."""
    memory_bytes: int
    l2_bytes: int
    dram_peak: float
    """Theoretical DRAM bandwidth in bytes/s: the 100 % of `gpu__dram_throughput`."""
    dram_copy: float
    """Highest rate a copy reaches, in bytes/s."""
    l2_bandwidth: float
    """Bytes/s between all SMs and the L2."""
    launch_us: float
    """Time from the start of a call to its first kernel, in microseconds."""
    kernel_us: float
    """Start and drain of each kernel, in microseconds; dependent launches pay it one after the other."""
    peak_flops: dict[str, float]
    """Dense FLOP/s: fp32 without tensor cores; fp16, bf16, tf32 with."""
    source: str

    def __post_init__(self) -> None:
        _require_positive(self, or_zero=("launch_us", "kernel_us", "tensor_load_mhz"))
        if not self.tensor_load_mhz < self.tensor_clock_mhz <= self.clock_mhz:
            raise ValueError(f"tensor cores do not make an SM faster, nor stop it: {self}")


@dataclass(frozen=True)
class GpuFacts:
    """A GPU in figures, as results name it; sizes in bytes.

    Attributes:
        name: `NVIDIA H200 (emulated)`.
        arch: `sm_90`.
        compile_arch: what nvcc is given, `sm_90a`.
        shared_per_block: the most that a block may ask for.
        peak_bandwidth: highest DRAM rate that a copy reaches, bytes/s.
        peak_flops: dense FLOP/s by precision: fp32 without tensor cores; fp16, bf16, tf32 with.
        peak_source: where the peaks are from.
        cuda_version: of nvcc, where one was asked.
        kind: never that of a real GPU.
    """

    name: str
    arch: str
    compile_arch: str
    sm_count: int
    clock_mhz: float
    memory_bytes: int
    l2_bytes: int
    shared_per_block: int
    shared_per_sm: int
    registers_per_sm: int
    max_warps_per_sm: int
    peak_bandwidth: float
    peak_flops: dict[str, float]
    peak_source: str
    cuda_version: str | None
    kind: Literal["emulated"] = "emulated"


@dataclass(frozen=True)
class GpuModel:
    """A GPU together with its architecture: all that the timing model reads."""

    gpu: Gpu
    architecture: Architecture
    attributes: dict[str, int] = field(default_factory=dict)
    """What it answers beyond its figures, by `CU_DEVICE_ATTRIBUTE_...` in small letters."""

    @property
    def limits(self) -> SmLimits:
        """Occupancy limits of one SM."""
        return sm_limits(self.gpu.arch)

    @property
    def clock_hz(self) -> float:
        """SM clock in Hz."""
        return self.gpu.clock_mhz * 1e6

    def clock_under_load(self, tensor_share: float) -> float:
        """SM clock in Hz when tensor cores are busy for a share of the clocks.

        Power is bounded, and a multiply-add of the tensor cores takes more of it than other work does.
        """
        gpu = self.gpu
        used = min(1.0, tensor_share / _FULL_EFFECT)
        lost = gpu.clock_mhz - gpu.tensor_clock_mhz + gpu.tensor_load_mhz * min(1.0, tensor_share)
        return 1e6 * (gpu.clock_mhz - used * lost)

    @property
    def warpgroup_fma_per_clk(self) -> float:
        """Dense fp16 multiply-adds per clock and SM at the tensor cores' peak, which wgmma is taken to reach."""
        return self.gpu.peak_flops["fp16"] / 2 / self.gpu.sms / (self.gpu.peak_clock_mhz * 1e6)

    @property
    def tensor_fma_per_clk(self) -> float:
        """Dense fp16 multiply-adds per clock and SM that `mma.sync` reaches."""
        return self.warpgroup_fma_per_clk * self.architecture.mma_fraction

    def facts(self, cuda_version: str | None) -> GpuFacts:
        """What is known of the GPU, and the nvcc that compiles for it."""
        limits = self.limits
        return GpuFacts(
            name=f"{self.gpu.name} (emulated)",
            arch=self.gpu.arch,
            compile_arch=self.architecture.compile_arch,
            sm_count=self.gpu.sms,
            clock_mhz=self.gpu.clock_mhz,
            memory_bytes=self.gpu.memory_bytes,
            l2_bytes=self.gpu.l2_bytes,
            shared_per_block=limits.shared_per_block,
            shared_per_sm=limits.shared_bytes,
            registers_per_sm=limits.registers,
            max_warps_per_sm=limits.warps,
            peak_bandwidth=self.gpu.dram_copy,
            peak_flops=self.gpu.peak_flops,
            peak_source=self.gpu.source,
            cuda_version=cuda_version,
        )

    def figures(self) -> str:
        """What the stand-in CUDA runtime answers to questions about the device: `key value` lines."""
        limits = self.limits
        major, minor = divmod(int(self.gpu.arch.removeprefix("sm_")), 10)
        figures = {
            "name": f"{self.gpu.name} (emulated)",
            "major": major,
            "minor": minor,
            "sm_count": self.gpu.sms,
            "clock_khz": int(self.gpu.clock_mhz * 1000),
            "l2_bytes": self.gpu.l2_bytes,
            "l1_bytes": self.architecture.l1_bytes,
            "shared_per_block_optin": limits.shared_per_block,
            "shared_per_sm": limits.shared_bytes,
            "registers_per_sm": limits.registers,
            "threads_per_sm": limits.warps * WARP_THREADS,
            "blocks_per_sm": limits.blocks,
            "memory_bytes": self.gpu.memory_bytes,
        }
        lines = [f"{key} {value}" for key, value in figures.items()]
        for name, number in attribute_numbers().items():
            value = self.attributes.get(name)
            lines.append(f"attribute {number} {name}" + ("" if value is None else f" {value}"))
        return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True)
class _ArchitecturesFile:
    format: str
    architectures: dict[str, Architecture]
    gpus: dict[str, Gpu]


def gpu_names() -> list[str]:
    """Names that `gpu_model` knows, in the file's order."""
    return list(_read().gpus)


def gpu_model(name: str) -> GpuModel:
    """The GPU called `name` (`H200`, `l40s`, any case). Raises InvalidInput for a name the file does not have."""
    data = _read()
    gpu = data.gpus.get(name.lower())
    if gpu is None:
        raise InvalidInput(f"no model of a GPU called {name}", hint=f"known: {', '.join(data.gpus)}")
    attributes = attribute_values(name.lower())
    return GpuModel(gpu=gpu, architecture=data.architectures[gpu.arch], attributes=attributes)


def gpu_of_architecture(arch: str) -> GpuModel:
    """The GPU that stands for an architecture, `sm_90` or `sm_90a`: the default GPU where it has that, else the first.

    Raises InvalidInput for an architecture that the file does not have.
    """
    data, wanted = _read(), arch.rstrip("af")
    for name in (DEFAULT_GPU, *data.gpus):
        if data.gpus[name].arch == wanted:
            return gpu_model(name)
    raise InvalidInput(f"no model of a GPU of architecture {arch}", hint=f"known: {', '.join(data.architectures)}")


@cache
def _read() -> _ArchitecturesFile:
    text = files("ptxemu.model").joinpath("architectures.json").read_text(encoding="utf-8")
    return decode(_ArchitecturesFile, json.loads(text), strict=True)
