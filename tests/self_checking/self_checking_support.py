"""A device whose CUDA runtime lives in host memory, for self-checking problems on libtorch's CPU tensors."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.devices.base import Build, Harness, SelfCheckingSession
from kernelblaster.devices.build.self_checking import SelfCheckingBuilder
from kernelblaster.devices.facts import DeviceFacts, DeviceKind, Library
from kernelblaster.devices.harness.self_checking_session import SelfCheckingProcess
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.sandbox.isolation import FileView, Isolation
from kernelblaster.sandbox.process import strongest

HERE = Path(__file__).parent
FIXTURE = HERE.parent / "fixtures" / "self_checking"
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
    """As much of a `Device` as self-checking problems are timed with."""

    builder: SelfCheckingBuilder
    runtime: Path
    facts: DeviceFacts = FACTS

    @property
    def isolation(self) -> Isolation:
        return strongest().level

    def prepare(self, problem: Problem, precision: Precision) -> Harness:
        return self.builder.harness(problem, precision)

    def build(self, source: str, harness: Harness, libraries: Sequence[Library] = ()) -> Build:
        return self.builder.program(source, harness, libraries)

    def open_self_checking(self, build: Build, *, timeout_s: float) -> SelfCheckingSession:
        view = FileView(readable=(self.runtime,))
        return SelfCheckingProcess(build, view=view, timeout_s=timeout_s, flush_bytes=1 << 20)

    def reading(self) -> None:
        return None

    def exclusive(self, *, wait: bool = True) -> nullcontext:
        return nullcontext(True)

    def shared(self) -> nullcontext:
        return nullcontext()

    def counting(self) -> nullcontext:
        return nullcontext()
