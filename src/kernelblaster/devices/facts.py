"""What is known of a GPU, real or emulated."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from pydantic import BaseModel, ConfigDict


class DeviceKind(StrEnum):
    """A real GPU, or the CPU that executes its PTX. Results of the two are never mixed."""

    CUDA = "cuda"
    EMULATED = "emulated"


class Library(StrEnum):
    """Libraries a candidate may link against when the run's policy allows it."""

    CUBLAS = "cublas"
    CUDNN = "cudnn"
    CUTLASS = "cutlass"


@cache
def compute_capability(arch: str) -> int:
    """90 of `sm_90` or `sm_90a`. Raises ValueError for anything else."""
    match = re.fullmatch(r"sm_(\d+)[a-z]?", arch)
    if match is None:
        raise ValueError(f"not an architecture: {arch!r}")
    return int(match[1])


class DeviceFacts(BaseModel):
    """What is known of the device; shown in prompts, written with every result.

    `peak_flops` is dense, per precision name (`fp32` without tensor cores, `fp16`, `bf16`, `tf32` with), in FLOP/s.
    `peak_bandwidth` is the highest DRAM rate a copy can reach, in bytes/s; `peak_source` says measured or data sheet.
    """

    model_config = ConfigDict(frozen=True)

    kind: DeviceKind
    name: str
    arch: str
    """`sm_90`"""
    compile_arch: str
    """What nvcc is given: `sm_90a` on Hopper."""
    sm_count: int
    clock_mhz: float
    memory_bytes: int
    l2_bytes: int
    shared_per_block: int
    """Opt-in limit in bytes."""
    shared_per_sm: int
    registers_per_sm: int
    max_warps_per_sm: int
    peak_bandwidth: float
    peak_flops: dict[str, float]
    peak_source: str
    uuid: str | None = None
    driver_version: str | None = None
    cuda_version: str | None = None

    @property
    def compute_capability(self) -> int:
        """90 of `sm_90`."""
        return compute_capability(self.arch)


@dataclass(frozen=True)
class GpuReading:
    """State of a GPU at one moment."""

    sm_mhz: float
    temperature: float
    """Degrees Celsius."""
