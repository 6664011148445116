"""Profilers by name: the device's own, or one that any device can have."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from kernelblaster.devices.base import COUNTED, Candidate, Device, Job, Profiler, Session
from kernelblaster.devices.forwarding import ForwardingDevice
from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import Profile, ProfileSource
from kernelblaster.registry import Registry

OWN = "device"
"""The name of what the device itself offers."""
_SAMPLES = 5


class ProfilerOpener(Protocol):
    """Makes the profiler of one call of a candidate."""

    def __call__(self, device: Device, candidate: Candidate, job: Job, timeout_s: float) -> Profiler:
        """Not started: that is what entering it does. `timeout_s` bounds each request."""
        ...


PROFILERS: Registry[ProfilerOpener] = Registry("profiler", ProfilerOpener)


class Opens(Protocol):
    """What starts a candidate's process without a profiler."""

    def open(self, candidate: Candidate, job: Job, *, timeout_s: float) -> Session:
        """Start it. Raises RunFailure."""
        ...


@dataclass(frozen=True)
class EventProfiler:
    """Times a call and counts nothing. Satisfies `devices.base.Profiler`.

    Attributes:
        device: starts the candidate's process.
        candidate: what is profiled.
        job: tensors, sizes, scalars.
        timeout_s: of each request.
        warning: why there are no counters.
    """

    device: Opens
    candidate: Candidate
    job: Job
    timeout_s: float
    warning: str = "counters were not asked for: times only"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing was started."""

    def settle(self) -> None:
        """Nothing runs."""

    def collect(self) -> Callable[[], Profile]:
        """The time of a warmed call by events, and what the compiler says of a single kernel. Raises RunFailure."""
        profile = self.times()
        return lambda: profile

    def times(self) -> Profile:
        """What `collect` finds. Raises RunFailure."""
        with self.device.open(self.candidate, self.job, timeout_s=self.timeout_s) as session:
            session.call(0)
            samples = session.time_calls([COUNTED] * _SAMPLES)
        found = {Metric.DURATION.value: statistics.median(sample.device_us for sample in samples) * 1e3}
        resources = self.candidate.built().resources
        if len(resources) == 1:
            found[Metric.REGISTERS_PER_THREAD.value] = float(resources[0].registers)
        return Profile(source=ProfileSource.EVENTS, kernels=[], totals=found, warnings=[self.warning])


@dataclass(frozen=True)
class ProfiledDevice(ForwardingDevice):
    """The inner device with another profiler."""

    opener: ProfilerOpener

    def profiler(self, candidate: Candidate, job: Job, *, timeout_s: float) -> Profiler:
        """The other profiler."""
        return self.opener(self.inner, candidate, job, timeout_s)


def profiled_by(device: Device, name: str) -> Device:
    """The device with the profiler of that name. Raises UsageError for an unknown one."""
    opener = PROFILERS.get(name)
    return device if name == OWN else ProfiledDevice(device, opener)


def _own(device: Device, candidate: Candidate, job: Job, timeout_s: float) -> Profiler:
    return device.profiler(candidate, job, timeout_s=timeout_s)


PROFILERS.register(OWN, _own, "the device's own: ncu on a GPU, counts of the emulated one")
PROFILERS.register("events", EventProfiler, "times by events, no counters")
