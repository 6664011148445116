"""A device whose CUDA runtime lives in host memory, for foreign problems on libtorch's CPU tensors."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.devices.base import Build, DeviceFacts, DeviceKind, Driver, Library, SelfJudged
from kernelblaster.devices.foreign import ForeignBuilder, SelfJudgedSession
from kernelblaster.devices.isolation import Isolation, View
from kernelblaster.devices.sandbox import strongest
from kernelblaster.problems.problem import Precision, Problem

HERE = Path(__file__).parent
FIXTURE = HERE.parent / "fixtures" / "foreign"
FACTS = DeviceFacts(
    kind=DeviceKind.CUDA,
    name="host memory",
    arch="sm_90",
    compile_arch="sm_90a",
    sm_count=132,
    clock_mhz=1980,
    memory_bytes=150 << 30,
    l2_bytes=1 << 20,
    shared_per_block=232448,
    shared_per_sm=233472,
    registers_per_sm=65536,
    max_warps_per_sm=64,
    peak_bandwidth=4.3e12,
    peak_flops={"fp32": 6.7e13},
    peak_source="test",
)


@dataclass
class HostDevice:
    """As much of a `Device` as foreign problems are timed with."""

    builder: ForeignBuilder
    runtime: Path
    facts: DeviceFacts = FACTS

    @property
    def isolation(self) -> Isolation:
        return strongest().level

    def prepare(self, problem: Problem, precision: Precision) -> Driver:
        return self.builder.driver(problem, precision)

    def build(self, source: str, driver: Driver, libraries: Sequence[Library] = ()) -> Build:
        return self.builder.program(source, driver, libraries)

    def open_self_judged(self, build: Build, *, timeout_s: float) -> SelfJudged:
        view = View(readable=(self.runtime,))
        return SelfJudgedSession(build, view=view, timeout_s=timeout_s, flush_bytes=1 << 20)

    def reading(self) -> None:
        return None

    def exclusive(self, *, wait: bool = True) -> nullcontext:
        return nullcontext(True)
