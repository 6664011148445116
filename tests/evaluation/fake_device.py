"""A device in memory whose kernels are Python functions: builds, runs, times and profiles without any compiler.

A source is a line `// kernel: NAME`, and NAME picks a behaviour from `KERNELS`. What is real: jobs, files, links,
poison, mutation checks, the session protocol. What is scripted: the computation and the clocks.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import torch
from fake_batches import FakeBatches

from kernelblaster.devices.base import Build, CallResult, Candidate, Harness, Job, TimingSample
from kernelblaster.devices.facts import DeviceFacts, DeviceKind, GpuReading, Library
from kernelblaster.devices.failures import BuildFailure, BuildFailureKind, RunFailure, RunFailureKind
from kernelblaster.devices.profiles import KernelProfile, KernelResources, Profile, ProfileSource, SanitizerFinding
from kernelblaster.evaluation.inputs.perturbations import apply_perturbation
from kernelblaster.problems.problem import Precision, Problem, TensorRole
from kernelblaster.sandbox.isolation import Isolation

Array = np.ndarray
GAP_US = 25.0
"""Host time beyond event time of an honest kernel here."""


def facts(kind: DeviceKind = DeviceKind.CUDA) -> DeviceFacts:
    """A small, slow GPU, so that the roofline floor of a small problem is some microseconds."""
    return DeviceFacts(
        kind=kind, name="Fake", arch="sm_90", compile_arch="sm_90a", sm_count=2, clock_mhz=1000, memory_bytes=2**30,
        l2_bytes=2**16, shared_per_block=2**16, shared_per_sm=2**17, registers_per_sm=65536, max_warps_per_sm=64,
        peak_bandwidth=1e9, peak_flops={"fp32": 1e12, "fp16": 2e12, "bf16": 2e12}, peak_source="made up",
    )  # fmt: skip


@dataclasses.dataclass
class Process:
    """What a kernel sees, and may keep, while its process lives."""

    calls: int = 0
    loads: int = 0
    timing: bool = False
    batching: bool = False
    overran: bool = False
    memory: dict[str, Array] = dataclasses.field(default_factory=dict)


Kernel = Callable[[Process, Array, Array], None]
"""Takes the process, the output (to be written in place) and the input x."""


def _honest(process: Process, output: Array, x: Array) -> None:
    output[:] = np.maximum(x, 0)


def _scaled(process: Process, output: Array, x: Array) -> None:
    output[:] = 2 * np.maximum(x, 0)


def _tail_missing(process: Process, output: Array, x: Array) -> None:
    output[:, :960] = np.maximum(x, 0)[:, :960]


def _tail_wrong(process: Process, output: Array, x: Array) -> None:
    output[:] = np.maximum(x, 0)
    output[:, 960:] = -7


def _knows_the_declared_extents(process: Process, output: Array, x: Array) -> None:
    output[:] = np.maximum(x, 0)
    if x.shape[1] % 64 == 63:
        output[:, -1] = 0


def _lazy(process: Process, output: Array, x: Array) -> None:
    return None


def _adds(process: Process, output: Array, x: Array) -> None:
    output += np.maximum(x, 0)


def _mutates(process: Process, output: Array, x: Array) -> None:
    output[:] = np.maximum(x, 0)
    x[0, 0] += 1


def _nan(process: Process, output: Array, x: Array) -> None:
    output[:] = np.maximum(x, 0)
    output[3, 5] = np.nan


def _jitters(process: Process, output: Array, x: Array) -> None:
    output[:] = np.maximum(x, 0) * np.float32(1 + 2.0**-21 * (process.calls % 4))


def _flips(process: Process, output: Array, x: Array) -> None:
    output[:] = np.maximum(x, 0)
    if process.calls == 1:
        output[0] = 99


def _caches(process: Process, output: Array, x: Array) -> None:
    kept = process.memory.setdefault("output", np.maximum(x, 0))
    output[:] = kept


def _skips_when_timed(process: Process, output: Array, x: Array) -> None:
    if not process.timing:
        output[:] = np.maximum(x, 0)


def _replays_when_timed(process: Process, output: Array, x: Array) -> None:
    if process.timing:
        output[:] = process.memory.setdefault("output", np.maximum(x, 0))
    else:
        output[:] = process.memory["output"] = np.maximum(x, 0)


def _skips_every_second(process: Process, output: Array, x: Array) -> None:
    if not process.timing or process.calls % 2:
        output[:] = np.maximum(x, 0)


def _skips_in_batches(process: Process, output: Array, x: Array) -> None:
    if not process.batching:
        output[:] = np.maximum(x, 0)


def _keeps_an_earlier_slot(process: Process, output: Array, x: Array) -> None:
    right = np.maximum(x, 0)
    output[:] = process.memory.setdefault("slot", right) if process.batching else right


def _wrong_at_good_addresses(process: Process, output: Array, x: Array) -> None:
    right = np.maximum(x, 0)
    output[:] = 2 * right if process.loads % 2 == 0 else right


def _skips_late(process: Process, output: Array, x: Array) -> None:
    if process.calls < 30:
        output[:] = np.maximum(x, 0)


def _writes_around(process: Process, output: Array, x: Array) -> None:
    output[:] = np.maximum(x, 0)
    process.overran = process.timing


def _wrong_when_timed(process: Process, output: Array, x: Array) -> None:
    output[:] = np.maximum(x, 0) * (3 if process.timing else 1)


def _crashes(process: Process, output: Array, x: Array) -> None:
    raise RunFailure(RunFailureKind.RUNTIME, "cudaErrorIllegalAddress: an illegal memory access", "log of the crash")


def _hangs(process: Process, output: Array, x: Array) -> None:
    raise RunFailure(RunFailureKind.TIMEOUT, "no answer within 60 s")


def _crashes_when_timed(process: Process, output: Array, x: Array) -> None:
    output[:] = np.maximum(x, 0)
    if process.timing:
        _crashes(process, output, x)


@dataclasses.dataclass(frozen=True)
class Script:
    """A kernel and what its clocks say."""

    kernel: Kernel = _honest
    device_us: float = 100.0
    hidden_us: float = 0.0
    """Work that the events do not see."""
    moved_us: float = 0.0
    """By which all clocks of the process are moved."""
    host_factor: float = 1.0
    own_streams: tuple[str, ...] = ()
    """What it asks for to work on streams of its own."""
    hoards: bool = False
    """Whether no other process can be timed while one of this kernel lives."""


KERNELS: dict[str, Script] = {
    "honest": Script(),
    "quick": Script(device_us=80.0),
    "slow": Script(device_us=200.0),
    "same": Script(device_us=100.2),
    "long": Script(device_us=150.0),
    "scaled": Script(_scaled),
    "tail_missing": Script(_tail_missing),
    "knows_the_declared_extents": Script(_knows_the_declared_extents),
    "tail_wrong": Script(_tail_wrong),
    "lazy": Script(_lazy),
    "adds": Script(_adds),
    "mutates": Script(_mutates),
    "nan": Script(_nan),
    "jitters": Script(_jitters),
    "flips": Script(_flips),
    "caches": Script(_caches),
    "skips_when_timed": Script(_skips_when_timed),
    "wrong_when_timed": Script(_wrong_when_timed),
    "replays_when_timed": Script(_replays_when_timed),
    "skips_every_second": Script(_skips_every_second),
    "skips_late": Script(_skips_late),
    "wrong_at_good_addresses": Script(_wrong_at_good_addresses),
    "skips_in_batches": Script(_skips_in_batches, device_us=80.0),
    "keeps_an_earlier_slot": Script(_keeps_an_earlier_slot, device_us=80.0),
    "moves_all_clocks": Script(device_us=10.0, moved_us=20.0),
    "thirty": Script(device_us=30.0),
    "gains_a_little": Script(device_us=55.0, moved_us=0.8),
    "gains_a_little_on_a_stream": Script(device_us=55.0, moved_us=0.8, own_streams=("cudaStreamCreateWithPriority",)),
    "writes_around": Script(_writes_around),
    "crashes": Script(_crashes),
    "hangs": Script(_hangs),
    "crashes_when_timed": Script(_crashes_when_timed),
    "side_stream": Script(device_us=40.0, hidden_us=100.0),
    "impossible": Script(device_us=0.5),
    "hoards": Script(hoards=True),
    "stopped_clock": Script(device_us=200.0, host_factor=0.1),
}


def source(name: str, extra: str = "") -> str:
    """A candidate that behaves as `name`."""
    return f"// kernel: {name}\n{extra}"


class FakeSession:
    """Runs one scripted kernel on the job's files."""

    def __init__(self, device: FakeDevice, candidate: Candidate, job: Job) -> None:
        self._device = device
        self._candidate = candidate
        self._job = job
        self._process = Process()
        self._paths = {t.spec.role: t.path for t in job.tensors}
        self._specs = {t.spec.role: t.spec for t in job.tensors}

    def __enter__(self) -> Self:
        if self._candidate.harness.program is not None:
            self._device.waits()
        self._name = self._candidate.built().source_path.name
        self._script = KERNELS[self._name]
        self._device.started(self._name, self._specs[TensorRole.OUTPUT].elements)
        self._device.hoarders += self._script.hoards
        self.reload()
        self._output = np.zeros(self._specs[TensorRole.OUTPUT].shape, np.float32)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._device.hoarders -= self._script.hoards
        self._device.ended()

    def reload(self) -> None:
        self._process.loads += 1  # after every second one the harness has its tensors at good addresses
        spec = self._specs[TensorRole.INPUT]
        self._x = np.fromfile(self._paths[TensorRole.INPUT], np.float32).reshape(spec.shape)
        self._original = self._expected = self._x.copy()

    def call(self, poison: int) -> CallResult:
        self._x = self._expected = self._original.copy()
        self._output.view(np.uint8)[:] = poison
        self._run()
        return self.fetch()

    def fetch(self) -> CallResult:
        written = self._output.tobytes()[: -4 if self._device.truncates else None]
        Path(self._paths[TensorRole.OUTPUT]).write_bytes(written)
        around = ("around:output",) if self._process.overran else ()
        return CallResult(mutated_inputs=around if np.array_equal(self._x, self._expected) else ("x",))

    def _install(self, perturbation: int) -> None:
        """What the driver does before a timed call."""
        index, tensor = next((i, t) for i, t in enumerate(self._job.tensors) if t.spec.role is TensorRole.INPUT)
        self._expected = (
            apply_perturbation(torch.from_numpy(self._original), tensor.change, index, perturbation).numpy().copy()
        )
        self._x = self._expected.copy()
        self._output.view(np.uint8)[:] = 0x5B if perturbation % 2 else 0xFF

    def time_calls(self, perturbations: Sequence[int], cover_fills: int = 1) -> list[TimingSample]:
        if self._device.hoarders > self._script.hoards:
            raise RunFailure(RunFailureKind.RUNTIME, "cudaErrorMemoryAllocation: out of memory", "")
        self._device.most_while_timing = max(self._device.most_while_timing, self._device.running)
        self._device.perturbations.setdefault(self._name, []).extend(perturbations)
        self._device.sampled.append(self._script)
        self._device.timed_unsettled += self._device.profilers > 0 and not self._device.settled
        self._process.timing = True
        samples = []
        for perturbation in perturbations:
            self._install(perturbation)
            self._run()
            samples.append(self._clocks())
        self._process.timing = False
        return samples

    def batches(self) -> FakeBatches | None:
        if self._device.facts.kind is DeviceKind.EMULATED:
            return None
        return FakeBatches(self._installed, self._run_in_batch, self._true_us)

    def _installed(self, perturbation: int) -> Array:
        self._install(perturbation)
        return self._output

    def _run_in_batch(self) -> None:
        self._process.batching = True
        self._run()
        self._process.batching = False

    def _true_us(self) -> float:
        factor = self._device.factor if self._name == "quick" else 1.0
        return factor * self._script.device_us + self._script.moved_us

    def _run(self) -> None:
        self._script.kernel(self._process, self._output, self._x)
        self._process.calls += 1

    def _clocks(self) -> TimingSample:
        factor = self._device.factor if self._name == "quick" else 1.0
        device_us = factor * self._script.device_us * float(np.exp(self._device.noise.normal(0, 0.003)))
        if self._device.facts.kind is DeviceKind.EMULATED:
            return TimingSample(device_us=self._script.device_us, host_us=None)
        host_us = (device_us + self._script.hidden_us + GAP_US) * self._script.host_factor
        return TimingSample(device_us=device_us, host_us=host_us)


class FakeVariants:
    """Several scripted kernels in one process, which a kernel that fails takes with it. `refused` ones fail softly."""

    def __init__(self, device: FakeDevice, builds: Sequence[Build], job: Job) -> None:
        self._device = device
        self._sessions = [FakeSession(device, build, job) for build in builds]
        self._current: FakeSession | None = None

    def __enter__(self) -> Self:
        self._device.sweeps += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    def _leave(self) -> None:
        if self._current is not None:
            self._current.__exit__(None, None, None)
            self._current = None

    def choose(self, index: int) -> str:
        self._leave()
        self._current = self._sessions[index].__enter__()
        if self._current._name in self._device.refused:
            return "cudaErrorInvalidValue: too much shared memory"
        self._current.call(0)
        return ""

    def time_calls(self, perturbations: Sequence[int], cover_fills: int = 1) -> list[TimingSample]:
        return self._current.time_calls(perturbations, cover_fills)


class FakeProfiler:
    """Notes whether it had settled when something was timed."""

    def __init__(self, device: FakeDevice, candidate: Candidate) -> None:
        self.device = device
        self.candidate = candidate

    def __enter__(self) -> Self:
        self.device.profilers += 1
        self.device.settled = False
        return self

    def __exit__(self, *_: object) -> None:
        self.device.profilers -= 1

    def settle(self) -> None:
        self.device.settled = True

    def collect(self) -> Callable[[], Profile]:
        found = self.counted()
        return lambda: self.read(found)

    def read(self, found: Profile) -> Profile:
        assert self.device.in_company or self.device.holders == 0, "counts are read when others may measure"
        return found

    def counted(self) -> Profile:
        self.device.most_while_profiling = max(self.device.most_while_profiling, self.device.running)
        if self.candidate.built().source_path.name == "slow":
            raise RunFailure(RunFailureKind.TIMEOUT, "the profiler ran out of time")
        kernel = KernelProfile(name="relu", grid=(1, 1, 1), block=(32, 1, 1), metrics={"gpu__time_duration.sum": 1e5})
        return Profile(source=ProfileSource.NCU, kernels=[kernel], totals=kernel.metrics)


class FakeDevice:
    """Satisfies `Device`. Counts what was asked of it. Where `late`, processes load their candidate after the start."""

    def __init__(
        self, kind: DeviceKind = DeviceKind.CUDA, *, truncates: bool = False, deferred_loading: bool = False
    ) -> None:
        self.sweeps = 0
        self.hoarders = 0
        self.refused: set[str] = set()
        self.facts = facts(kind)
        self.isolation = Isolation.LIMITS
        self.noise = np.random.default_rng(5)
        self.truncates = truncates
        self.deferred_loading = deferred_loading
        self.waits: Callable[[], None] = lambda: None
        """Called when a process has started that has its candidate still to load."""
        self.compiles: Callable[[str], None] = lambda source: None
        """Called before each build."""
        self.opened = self.closed = 0
        self.starts: list[tuple[str, int]] = []
        """Kernel and output elements of every process, in the order of their starts."""
        self.at_start: Callable[[str, int], None] = lambda name, elements: None
        """Called while a process starts, with the same; what it raises makes the start fail."""
        self.sampled: list[Script] = []
        self.perturbations: dict[str, list[int]] = {}
        """Kernel -> the variants of its timed calls."""
        self.factor = 1.0
        """What the times of `quick` are multiplied by."""
        self.clock_reading: GpuReading | None = None
        self.holders = 0
        self.most_holders = 0
        self.in_company = False
        """Whether processes may run while nobody holds it, as those of trusted candidates do."""
        self.profilers = 0
        """Running now."""
        self.most_while_timing = self.most_while_profiling = 0
        """Processes without a profiler that were there while something was sampled or profiled."""
        self.settled = False
        self.timed_unsettled = 0
        """Times something was sampled while a profiler might still be at work."""
        self._lock = threading.Lock()
        self._counting = threading.Lock()

    @property
    def running(self) -> int:
        """Processes that are there now."""
        return self.opened - self.closed

    @property
    def _may_run(self) -> bool:
        return self.in_company or self.holders == 1 or self.facts.kind is DeviceKind.EMULATED

    def started(self, name: str, elements: int) -> None:
        with self._counting:
            assert self._may_run, "a process of an idle device"
            self.starts.append((name, elements))
        self.at_start(name, elements)
        with self._counting:
            self.opened += 1

    def ended(self) -> None:
        with self._counting:
            assert self._may_run, "it outlived the hold of the device"
            self.closed += 1

    def prepare(self, problem: Problem, precision: Precision) -> Harness:
        return Harness(
            problem, precision, Path("driver.o"), "launch", program=Path("program") if self.deferred_loading else None
        )

    def build(self, source: str, harness: Harness, libraries: Sequence[Library] = ()) -> Build:
        self.compiles(source)
        match = re.match(r"// kernel: (\w+)", source)
        if match is None:
            raise BuildFailure(BuildFailureKind.COMPILE, "line 1: expected a declaration", "x" * 50_000)
        if match[1] not in KERNELS:
            raise BuildFailure(BuildFailureKind.POLICY, f"links {match[1]}")
        resources = KernelResources(
            name="relu", registers=16, shared_bytes=0, spill_store_bytes=0, spill_load_bytes=0, stack_bytes=0
        )
        digest = hashlib.sha256(source.encode()).hexdigest()
        streams = KERNELS[match[1]].own_streams
        return Build(digest, Path("program"), Path(match[1]), harness, (resources,), 0.1, own_streams=streams)

    def open(self, candidate: Candidate, job: Job, *, timeout_s: float) -> FakeSession:
        return FakeSession(self, candidate, job)

    def open_variants(self, builds: Sequence[Build], job: Job, *, timeout_s: float) -> FakeVariants:
        return FakeVariants(self, builds, job)

    def profiler(self, candidate: Candidate, job: Job, *, timeout_s: float) -> FakeProfiler:
        return FakeProfiler(self, candidate)

    def sanitize(self, build: Build, job: Job, *, timeout_s: float) -> list[SanitizerFinding]:
        with self.open(build, job, timeout_s=timeout_s) as session:
            session.call(0)
        return []

    def reading(self) -> GpuReading | None:
        return self.clock_reading

    def shared(self) -> AbstractContextManager[None]:
        return nullcontext()

    def counting(self) -> AbstractContextManager[None]:
        return nullcontext()

    @contextmanager
    def exclusive(self, *, wait: bool = True) -> Iterator[bool]:
        if not self._lock.acquire(blocking=wait):
            yield False
            return
        self.holders += 1
        self.most_holders = max(self.most_holders, self.holders)
        try:
            yield True
        finally:
            self.holders -= 1
            self._lock.release()
