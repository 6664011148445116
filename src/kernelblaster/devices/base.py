"""The `Device` seam: what the evaluation asks of a GPU, real or emulated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from kernelblaster.devices.facts import DeviceFacts, GpuReading, Library
from kernelblaster.devices.profiles import KernelResources, Profile, SanitizerFinding
from kernelblaster.problems.problem import Precision, Problem, TensorSpec
from kernelblaster.sandbox.isolation import Isolation


@dataclass(frozen=True)
class Harness:
    """`driver.cpp` compiled once per problem, precision and architecture."""

    problem: Problem
    precision: Precision
    object_path: Path
    launcher_symbol: str
    """Mangled name of `launch_gpu_implementation` that the harness asks for."""
    loads_from: tuple[Path, ...] = ()
    """Directories that programs with this harness load libraries from, beside the system's and the toolkit's."""
    program: Path | None = None
    """It, linked without a candidate: it can be started early, and loads a candidate when told to. None where every
    candidate is linked into a program of its own."""


class Candidate(Protocol):
    """A candidate that is built, or will be: the harness can start before that."""

    @property
    def harness(self) -> Harness:
        """The harness that will call it."""
        ...

    @property
    def libraries(self) -> tuple[Library, ...]:
        """What it may link."""
        ...

    def built(self) -> Build:
        """The build, once there is one. Raises BuildFailure."""
        ...


@dataclass(frozen=True)
class Build:
    """A candidate that compiled and linked; content-addressed and cached. Satisfies `Candidate`."""

    digest: str
    """SHA-256 of everything that went into the program."""
    program: Path
    """What is started: harness and candidate, or the harness alone, which loads `library`."""
    source_path: Path
    harness: Harness
    resources: tuple[KernelResources, ...]
    seconds: float
    """Wall time of the build; 0.0 when it came from the cache."""
    ptx: Path | None = None
    cubin: Path | None = None
    """The machine code beside the PTX, where both were kept."""
    library: Path | None = None
    """The candidate as a shared object, where `program` does not hold it."""
    hints: tuple[str, ...] = ()
    """What its host code asks for that leads nowhere, because it is contained; one line each."""
    own_streams: tuple[str, ...] = ()
    """Functions that its host code asks for to work on streams beside the legacy default one, which is timed."""
    libraries: tuple[Library, ...] = ()
    """What it may link."""
    machine: Mapping[str, int] | None = None
    """Features of its machine code -> instructions that show them; None where no tool could list it."""

    def built(self) -> Self:
        """Itself."""
        return self


class PerturbationKind(StrEnum):
    """What a perturbation may do to the values of a tensor (see `harness/include/kernelblaster/perturbation.hpp`)."""

    FIXED = "fixed"
    """Nothing: outputs, labels stored as numbers, integers and flags whose order means something."""
    SCALE = "scale"
    """Halve all of them: positions mean something, as in a triangular matrix."""
    SHIFT = "shift"
    """Rotate them and halve the leading ones."""
    ROTATE = "rotate"
    """Rotate them: integers and flags, which so keep their range."""
    MIRROR = "mirror"
    """Rotate them and exchange each leading one for what is as far from the other bound of its range."""


UNPERTURBED = 0
"""The perturbation that leaves values and addresses as they are."""
COUNTED = 1
"""The perturbation of calls that are counted and not judged, which find tensors aligned as timed calls do."""


@dataclass(frozen=True)
class JobTensor:
    """A tensor and the file that carries its bytes (raw, row-major)."""

    spec: TensorSpec
    path: Path
    change: PerturbationKind = PerturbationKind.FIXED
    mirror: int = 0
    """Least plus largest value of a tensor that may be mirrored."""


@dataclass(frozen=True)
class Job:
    """Everything the harness is told: tensors by file, sizes and scalars by name. No expected values."""

    tensors: tuple[JobTensor, ...]
    sizes: dict[str, int] = field(hash=False)
    scalars: dict[str, float] = field(hash=False)
    instruction_budget: int = 0
    """Warp instructions of a launch that are enough for its counts on a modelled device; 0: every block is executed."""


NO_TENSORS = Job(tensors=(), sizes={}, scalars={})
"""What a self-checking driver is told, which draws its own inputs."""


@dataclass(frozen=True)
class CallResult:
    """One verified call: outputs now lie in the job's output files."""

    mutated_inputs: tuple[str, ...]
    """Names of inputs and weights whose bytes changed."""


@dataclass(frozen=True)
class TimingSample:
    """One cold-L2 timed call of the launcher, in microseconds, by all clocks there are."""

    device_us: float
    """CUDA events around the call (emulated: the timing model)."""
    host_us: float | None
    """Host clock around the call and the device-wide sync (emulated: None)."""
    enqueue_us: float | None = None
    """Host clock around the launcher alone: how long the GPU must be busy for the call to be launched behind it."""
    judge_us: float | None = None
    """Clock of the judge's process around the visit, per call of it; None where nobody looked."""
    executed_share: float = 1.0
    """Share of the call's blocks whose execution a modelled time rests on."""


@dataclass(frozen=True)
class BatchTime:
    """A batch of calls by the judge's own clock, in microseconds since it was asked for."""

    issued_us: float
    """Until the last call was launched."""
    done_us: float
    """Until the device was idle again."""


class BatchSession(Protocol):
    """Calls that nothing in the candidate's process times. Each has a slot: values, addresses, outputs of its own."""

    def prepare_batch(self, perturbations: Sequence[int]) -> None:
        """Put the values of each perturbation, none of them `UNPERTURBED`, into a slot; poison its outputs.

        Raises RunFailure.
        """
        ...

    def run_batch(self, calls: int, fills: int) -> BatchTime:
        """Make one call in each of the first slots, launched behind fills that are twice the L2 each.

        Raises RunFailure.
        """
        ...

    def select_slot(self, slot: int) -> None:
        """What a slot holds is what `Session.fetch` writes next. Raises RunFailure."""
        ...


class Session(Protocol):
    """A running harness process with a candidate. Context manager; always killed on exit."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def call(self, poison: int) -> CallResult:
        """Fill outputs with byte `poison`, call the candidate, write the outputs. Raises RunFailure."""
        ...

    def time_calls(self, perturbations: Sequence[int], cover_fills: int = 1) -> list[TimingSample]:
        """Time a call per perturbation, each on values and addresses of its own and with a cold L2. Raises RunFailure.

        Args:
            perturbations: 64-bit numbers; `UNPERTURBED` for the values of the files.
            fills: short fills of memory that the call is launched behind.
        """
        ...

    def fetch(self) -> CallResult:
        """Write the outputs as the last call, timed or not, left them. Raises RunFailure."""
        ...

    def reload(self) -> None:
        """Read the job's input files again: they may hold other values now. Raises RunFailure."""
        ...

    def batches(self) -> BatchSession | None:
        """Batches of calls of the same process; None where times are modelled, or nothing holds the slots."""
        ...


MOST_VARIANTS = 64
"""Candidates that one process of a harness takes."""


class VariantSession(Protocol):
    """A process with several variants of a candidate, which are called in turns. Context manager; killed on exit.

    They share a process, so that what it says of one is no verdict: a variant that is to be kept is judged by itself.
    """

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def choose(self, index: int) -> str:
        """Call this variant from here on, and once now. Why it cannot run, else empty.

        Raises RunFailure when it took the process with it.
        """
        ...

    def time_calls(self, perturbations: Sequence[int], cover_fills: int = 1) -> list[TimingSample]:
        """As of `Session`, of the chosen variant. Raises RunFailure."""
        ...


@dataclass(frozen=True)
class SelfCheckOutput:
    """What a self-checking driver returned and printed.

    Attributes:
        returncode: what it returned from `main`, or passed to `exit`.
        text: the end of what it printed; a candidate's output is not among it.
        restored_bytes: of the memory around the launcher's arguments, put back before each timed call.
        missing_bytes: of it that could not be put back, because there was no memory left for a copy.
    """

    returncode: int
    text: str
    restored_bytes: int
    missing_bytes: int


class SelfCheckingSession(Session, Protocol):
    """A session whose driver judges itself (`Problem.weakly_verified`)."""

    def finish(self) -> SelfCheckOutput:
        """Make the call that the driver judges, as the timed ones were made, and let it end. Raises RunFailure."""
        ...


class Profiler(Protocol):
    """A candidate's process under a profiler, which may be started long before it is asked. A context manager."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def settle(self) -> None:
        """Wait until its process is prepared and idle, so that it disturbs nobody who is timed."""
        ...

    def collect(self) -> Callable[[], Profile]:
        """Have one warmed call counted, alone on the device. Raises RunFailure.

        What is returned reads the counts: it needs no device, and the profiler not to be left yet. It may raise
        RunFailure, too. Where there are no counters the profile has `ProfileSource.EVENTS` and a warning.
        """
        ...


class Device(Protocol):
    """A place where candidates are built, run, timed and profiled."""

    @property
    def facts(self) -> DeviceFacts:
        """What is known of it."""
        ...

    @property
    def isolation(self) -> Isolation:
        """How candidates are kept apart from the machine they run on."""
        ...

    def prepare(self, problem: Problem, precision: Precision) -> Harness:
        """Compile the harness, once per problem, precision and architecture. Raises DeviceError."""
        ...

    def build(self, source: str, harness: Harness, libraries: Sequence[Library] = ()) -> Build:
        """Compile a candidate as its own translation unit and link it. Cached by content. Raises BuildFailure."""
        ...

    def open(self, candidate: Candidate, job: Job, *, timeout_s: float) -> Session:
        """Start the candidate's process under limits; `timeout_s` bounds each request.

        The process loads its inputs before the candidate is built, where `Harness.program` allows it.

        Raises RunFailure, and BuildFailure for a candidate that cannot be built.
        """
        ...

    def open_variants(self, builds: Sequence[Build], job: Job, *, timeout_s: float) -> VariantSession:
        """Start one process for up to `MOST_VARIANTS` candidates of one harness. Raises RunFailure."""
        ...

    def open_self_checking(self, build: Build, *, timeout_s: float) -> SelfCheckingSession:
        """Start the process of a candidate whose driver judges itself. Raises RunFailure."""
        ...

    def profiler(self, candidate: Candidate, job: Job, *, timeout_s: float) -> Profiler:
        """What will profile one call of a candidate; `timeout_s` bounds each of its requests."""
        ...

    def sanitize(self, build: Build, job: Job, *, timeout_s: float) -> list[SanitizerFinding]:
        """Run the sanitizers the device has. Raises RunFailure."""
        ...

    def reading(self) -> GpuReading | None:
        """Clock and temperature now; None where they cannot be read."""
        ...

    def exclusive(self, *, wait: bool = True) -> ExclusiveUse:
        """Context manager: the file lock that lets one process at a time measure on this device.

        Entering tells whether the device is held, which it always is after waiting.
        """
        ...

    def shared(self) -> AbstractContextManager[None]:
        """Context manager: use of this device for anything but measuring, while nobody measures on it."""
        ...

    def counting(self) -> AbstractContextManager[None]:
        """Context manager: use of this device's counters, by one profiler at a time. Entered before the other two."""
        ...


def profile_once(device: Device, build: Build, job: Job, *, timeout_s: float) -> Profile:
    """Counters of one warmed call, in a process for that alone. Raises RunFailure."""
    with device.profiler(build, job, timeout_s=timeout_s) as profiler:
        return profiler.collect()()


class ExclusiveUse(Protocol):
    """Held while measuring."""

    def __enter__(self) -> bool: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None: ...
