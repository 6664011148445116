"""A device and a model that report what they are asked to do. They judge and change nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from kernelblaster.devices.base import (
    BatchSession,
    Build,
    CallResult,
    Candidate,
    Harness,
    Job,
    Profiler,
    SelfCheckingSession,
    Session,
    TimingSample,
    VariantSession,
)
from kernelblaster.devices.facts import Library
from kernelblaster.devices.forwarding import ForwardingDevice
from kernelblaster.devices.profiles import SanitizerFinding
from kernelblaster.models.base import ChatModel, Reply, Request
from kernelblaster.problems.problem import Precision, Problem


@dataclass(frozen=True)
class ProgressDevice(ForwardingDevice):
    """Passes everything on to `inner`, and each stage to `tell`."""

    tell: Callable[[str], object]

    def prepare(self, problem: Problem, precision: Precision) -> Harness:
        """Compile the driver."""
        self.tell(f"compiling the harness of {problem.id}")
        return self.inner.prepare(problem, precision)

    def build(self, source: str, harness: Harness, libraries: Sequence[Library] = ()) -> Build:
        """Compile a candidate."""
        self.tell(f"compiling a kernel for {harness.problem.id}")
        return self.inner.build(source, harness, libraries)

    def open(self, candidate: Candidate, job: Job, *, timeout_s: float) -> Session:
        """Start a candidate's process, which may come up while its kernel still compiles: its calls tell of it."""
        session = self.inner.open(candidate, job, timeout_s=timeout_s)
        return _ProgressSession(session, lambda: self.tell(f"running a kernel of {candidate.harness.problem.id}"))

    def open_variants(self, builds: Sequence[Build], job: Job, *, timeout_s: float) -> VariantSession:
        """Start a process for several variants of a candidate."""
        self.tell(f"timing {len(builds)} variants of a kernel for {builds[0].harness.problem.id}")
        return self.inner.open_variants(builds, job, timeout_s=timeout_s)

    def open_self_checking(self, build: Build, *, timeout_s: float) -> SelfCheckingSession:
        """Start a candidate's process with the problem's own driver."""
        self.tell(f"running a kernel of {build.harness.problem.id}, which its own driver judges")
        return self.inner.open_self_checking(build, timeout_s=timeout_s)

    def profiler(self, candidate: Candidate, job: Job, *, timeout_s: float) -> Profiler:
        """Start a profiler."""
        self.tell(f"running a kernel of {candidate.harness.problem.id}, and again to collect its counters")
        return self.inner.profiler(candidate, job, timeout_s=timeout_s)

    def sanitize(self, build: Build, job: Job, *, timeout_s: float) -> list[SanitizerFinding]:
        """Run the sanitizers."""
        self.tell(f"running the sanitizers on a kernel of {build.harness.problem.id}")
        return self.inner.sanitize(build, job, timeout_s=timeout_s)


@dataclass(frozen=True)
class _ProgressSession:
    """Passes everything on to `inner`, and says so whenever the candidate is called."""

    inner: Session
    tell: Callable[[], object]

    def __enter__(self) -> Self:
        self.inner.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.inner.__exit__(kind, error, trace)

    def call(self, poison: int) -> CallResult:
        self.tell()
        return self.inner.call(poison)

    def time_calls(self, perturbations: Sequence[int], cover_fills: int = 1) -> list[TimingSample]:
        self.tell()
        return self.inner.time_calls(perturbations, cover_fills)

    def fetch(self) -> CallResult:
        return self.inner.fetch()

    def reload(self) -> None:
        self.inner.reload()

    def batches(self) -> BatchSession | None:
        return self.inner.batches()


@dataclass(frozen=True)
class ProgressModel:
    """Passes everything on to `inner`, and each question to `tell`. Satisfies `models.base.ChatModel`."""

    inner: ChatModel
    tell: Callable[[str], object]

    @property
    def name(self) -> str:
        """Of the inner model."""
        return self.inner.name

    async def complete(self, request: Request) -> Reply:
        """Ask."""
        self.tell(f"waiting for {self.inner.name} ({request.purpose})")
        return await self.inner.complete(request)

    def answerable(self, tags: dict[str, str]) -> frozenset[str] | None:
        """What the inner model can answer."""
        return self.inner.answerable(tags)
