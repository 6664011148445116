"""The GPUs that the emulated device can stand for, read from `architectures.json`.

A GPU is its own figures (SMs, clock, DRAM, L2) on top of those of its architecture (pipes, latencies). Each entry
says where its figures come from. No formula lives here: those are in `kernel.py`.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.errors import UsageError
from ptxemu.counters.record import WARP_THREADS
from ptxemu.model.occupancy import SmLimits, sm_limits

DEFAULT_GPU = "h200"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Lanes(_Frozen):
    """Results per clock and SM of each pipe; `fma` has half precision, with `halves` pairs, and integer multiplication,
    which only the part `fma_integers` of its lanes has."""

    fma: float = Field(gt=0)
    fma_integers: float = Field(gt=0)
    halves: float = Field(gt=0)
    alu: float = Field(gt=0)
    fp64: float = Field(gt=0)
    xu: float = Field(gt=0)


class Latency(_Frozen):
    """Clocks from issue to result."""

    alu: float = Field(gt=0)
    double: float = Field(gt=0)
    tensor: float = Field(gt=0)
    division: float = Field(gt=0)
    """A division or root that ptxas expands into many instructions."""
    xu: float = Field(gt=0)
    shuffle: float = Field(gt=0)
    shared: float = Field(gt=0)
    barrier: float = Field(gt=0)
    block_start: float = Field(gt=0)
    """From the end of one block to the first instruction of the block that takes its place."""
    l1: float = Field(gt=0)
    l2: float = Field(gt=0)
    """Of sectors that are there."""
    dram: float = Field(gt=0)
    atomic: float = Field(gt=0)
    constant: float = Field(gt=0)
    """Of a constant at an address that is computed."""
    special_register: float = Field(gt=0)
    """Of a special register."""
    operands: float = Field(gt=0)
    """Until a store has read what it stores."""
    branch: float = Field(gt=0)


class Timing(_Frozen):
    """How the parts of the timing model weigh; see `chain.py`, `traffic.py` and `kernel.py`."""

    norm: float = Field(gt=1)
    """Exponent of the smooth maximum over paths where blocks are replaced many times."""
    norm_at_once: float = Field(gt=1)
    """The same where all blocks begin together: they load, compute and store at the same times."""
    pipe_share: float = Field(gt=0, le=1)
    """Share of its peak that the busiest unit of an SM reaches under load."""
    instruction_clocks: float = Field(gt=0)
    """Clocks for which each machine instruction holds its warp."""
    block_clocks: float = Field(ge=0)
    """SM clocks between the starts of two blocks, anywhere on the GPU, when blocks are short."""
    reads_under_way: float = Field(gt=0)
    """Reads of one sector by several SMs that find it on its way from DRAM and wait as long as the first."""
    l1_under_way: float = Field(ge=0)
    """Share of the hits in the L1 on lines of other warps that find them on their way and wait as long as those."""
    doubling_clocks: float = Field(ge=0)
    """Clocks by which the slowest line comes later from DRAM when a load touches twice as many as its bytes fill."""
    line_clocks: float = Field(ge=0)
    """Clocks that a warp takes for each 128-byte line of a load beyond those that its bytes fill."""
    conflict_clocks: float = Field(ge=0)
    """Clocks that each further pass of a shared-memory request adds to its latency."""
    spills_in_flight: float = Field(gt=0)
    """Spilled registers that a warp loads back together."""
    passes_per_line: float = Field(gt=0)
    """Passes through the data stage for each line of a request beyond those that its bytes fill."""
    passes_per_fill: float = Field(ge=0)
    """The same for each sector that the L2 brings."""
    store_sector_clocks: float = Field(gt=0)
    """Clocks of the data stage for each sector that is stored."""
    store_line_clocks: float = Field(ge=0)
    """The same for each line that a store writes to."""
    lines_per_clk: float = Field(gt=0)
    """Lines that an L1 looks up per clock."""
    l2_miss_weight: float = Field(gt=0)
    """Time in the L2 of a sector that DRAM has to bring, against 32 bytes at its bandwidth."""
    l2_line_weight: float = Field(gt=0)
    """The same of each line that a load looks up."""
    l2_write_weight: float = Field(gt=0)
    """The same of each sector written."""
    l2_written_line_weight: float = Field(ge=0)
    """The same of each line that a store writes to."""
    atomic_pass_weight: float = Field(gt=0)
    """The same of each pass of an atomic."""
    atomic_line_clocks: float = Field(gt=0)
    """SM clocks between two passes of atomics at one line."""
    atomic_float_clocks: float = Field(gt=0)
    """The same of sums of floats."""


class Architecture(_Frozen):
    """What all GPUs of one compute capability share."""

    compile_arch: str
    """What nvcc is given."""
    l1_bytes: int = Field(gt=0)
    """L1 cache and shared memory of one SM together."""
    schedulers: int = Field(gt=0)
    """Warp instructions issued per clock and SM."""
    lanes: Lanes
    mma_fraction: float = Field(gt=0, le=1)
    """Share of the tensor cores' peak that `mma.sync` and `wmma` reach."""
    latency: Latency
    timing: Timing
    l2_partitions: Literal[1, 2]
    """Halves of the L2; with two, half of all sectors come from the far one and pass through the near one, too."""
    source: str


class Gpu(_Frozen):
    """One product."""

    name: str
    arch: str
    sms: int = Field(gt=0)
    clock_mhz: float = Field(gt=0)
    memory_bytes: int = Field(gt=0)
    l2_bytes: int = Field(gt=0)
    dram_peak: float = Field(gt=0)
    """Theoretical DRAM bandwidth in bytes/s: the 100 % of `gpu__dram_throughput`."""
    dram_copy: float = Field(gt=0)
    """Highest rate a copy reaches, in bytes/s."""
    l2_bandwidth: float = Field(gt=0)
    """Bytes/s between all SMs and the L2."""
    launch_us: float = Field(ge=0)
    """Time from the start of a call to its first kernel, in microseconds."""
    kernel_us: float = Field(ge=0)
    """Start and drain of each kernel, in microseconds; dependent launches pay it one after the other."""
    peak_flops: dict[str, float]
    """Dense FLOP/s: fp32 without tensor cores; fp16, bf16, tf32 with."""
    source: str


class GpuModel(_Frozen):
    """A GPU together with its architecture: all that the timing model reads."""

    gpu: Gpu
    architecture: Architecture

    @property
    def limits(self) -> SmLimits:
        """Occupancy limits of one SM."""
        return sm_limits(self.gpu.arch)

    @property
    def clock_hz(self) -> float:
        """SM clock in Hz."""
        return self.gpu.clock_mhz * 1e6

    @property
    def tensor_fma_per_clk(self) -> float:
        """Dense fp16 multiply-adds per clock and SM that `mma.sync` reaches."""
        peak = self.gpu.peak_flops["fp16"] / 2 / self.gpu.sms / self.clock_hz
        return peak * self.architecture.mma_fraction

    def facts(self, cuda_version: str | None) -> DeviceFacts:
        """The device facts shown in prompts and written with results."""
        limits = self.limits
        return DeviceFacts(
            kind=DeviceKind.EMULATED,
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
        return "".join(f"{key} {value}\n" for key, value in figures.items())


class _File(_Frozen):
    format: str
    architectures: dict[str, Architecture]
    gpus: dict[str, Gpu]


def gpu_names() -> list[str]:
    """Names that `gpu_model` knows, in the file's order."""
    return list(_read().gpus)


def gpu_model(name: str) -> GpuModel:
    """The GPU called `name` (`H200`, `l40s`, any case). Raises UsageError for a name the file does not have."""
    data = _read()
    gpu = data.gpus.get(name.lower())
    if gpu is None:
        raise UsageError(f"no model of a GPU called {name}", hint=f"GPU_TYPE is one of: {', '.join(data.gpus)}")
    return GpuModel(gpu=gpu, architecture=data.architectures[gpu.arch])


def gpu_of_architecture(arch: str) -> GpuModel:
    """The GPU that stands for an architecture, `sm_90` or `sm_90a`: the default GPU where it has that, else the first.

    Raises UsageError for an architecture that the file does not have.
    """
    data, wanted = _read(), arch.rstrip("af")
    for name in (DEFAULT_GPU, *data.gpus):
        if data.gpus[name].arch == wanted:
            return gpu_model(name)
    raise UsageError(f"no model of a GPU of architecture {arch}", hint=f"known: {', '.join(data.architectures)}")


@cache
def _read() -> _File:
    text = files("ptxemu.model").joinpath("architectures.json").read_text(encoding="utf-8")
    return _File.model_validate_json(text)
