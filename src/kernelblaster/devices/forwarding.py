"""A device that passes everything on to another: the base of those that change one thing about it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from kernelblaster.devices.base import (
    Build,
    Candidate,
    Device,
    ExclusiveUse,
    Harness,
    Job,
    Profiler,
    SelfCheckingSession,
    Session,
    VariantSession,
)
from kernelblaster.devices.facts import DeviceFacts, GpuReading, Library
from kernelblaster.devices.profiles import SanitizerFinding
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.sandbox.isolation import Isolation


@dataclass(frozen=True)
class ForwardingDevice:
    """Does what `inner` does. Satisfies `devices.base.Device`."""

    inner: Device

    @property
    def facts(self) -> DeviceFacts:
        """Of the inner device."""
        return self.inner.facts

    @property
    def isolation(self) -> Isolation:
        """Of the inner device."""
        return self.inner.isolation

    def prepare(self, problem: Problem, precision: Precision) -> Harness:
        """Compile the harness."""
        return self.inner.prepare(problem, precision)

    def build(self, source: str, harness: Harness, libraries: Sequence[Library] = ()) -> Build:
        """Compile a candidate."""
        return self.inner.build(source, harness, libraries)

    def open(self, candidate: Candidate, job: Job, *, timeout_s: float) -> Session:
        """Start a candidate's process."""
        return self.inner.open(candidate, job, timeout_s=timeout_s)

    def open_variants(self, builds: Sequence[Build], job: Job, *, timeout_s: float) -> VariantSession:
        """Start a process for several candidates."""
        return self.inner.open_variants(builds, job, timeout_s=timeout_s)

    def open_self_checking(self, build: Build, *, timeout_s: float) -> SelfCheckingSession:
        """Start a candidate's process with the problem's own driver."""
        return self.inner.open_self_checking(build, timeout_s=timeout_s)

    def profiler(self, candidate: Candidate, job: Job, *, timeout_s: float) -> Profiler:
        """Start a profiler."""
        return self.inner.profiler(candidate, job, timeout_s=timeout_s)

    def sanitize(self, build: Build, job: Job, *, timeout_s: float) -> list[SanitizerFinding]:
        """Run the sanitizers."""
        return self.inner.sanitize(build, job, timeout_s=timeout_s)

    def reading(self) -> GpuReading | None:
        """Of the inner device."""
        return self.inner.reading()

    def exclusive(self, *, wait: bool = True) -> ExclusiveUse:
        """Hold the inner device."""
        return self.inner.exclusive(wait=wait)

    def shared(self) -> AbstractContextManager[None]:
        """Share the inner device."""
        return self.inner.shared()

    def counting(self) -> AbstractContextManager[None]:
        """Have the inner device's counters."""
        return self.inner.counting()
