"""How long a call takes, and which of two kernels is faster.

Two processes are sampled in turns A B B A, each sample with a cold L2, until the interval of the ratio is narrow or
time is up. A modelled device gives the same time every time: it is asked once, and its effects must be larger.

Two checks refuse a time that no honest kernel has:

Clocks. The driver empties the GPU, starts the host clock, enqueues a short fill that covers launch latency, records an
event, calls the launcher, records the other event, and stops the host clock when the whole device is idle. So

    gap = host time - event time = the fill + two driver round trips

whatever the kernel does: host work inside the launcher lies between the events and counts twice. Only work that the
events do not see (another stream, a detached graph) makes a gap grow. Its median is compared with the rival's, taken in
turns on the same machine, and may exceed it by `GAP_SLACK_US` or a quarter of the event time, whichever is more: hidden
work below that cannot win much. Without a rival the gap may be three fills and `ALONE_SLACK_US`. Event time above host
time means that a clock was tampered with.

Floor. No kernel beats `roofline.floor_us` by more than `FLOOR_MARGIN`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kernelblaster.devices.base import DeviceFacts, DeviceKind, RunFailure, Sample
from kernelblaster.evaluation.statistics import (
    Block,
    StopRule,
    decide,
    median_interval,
    quartile_range,
    speedup_interval,
)
from kernelblaster.evaluation.types import Comparison, Timing

MEASURED_THRESHOLD = 0.01
"""Least effect that counts on a GPU."""
MODELLED_THRESHOLD = 0.05
"""Least effect that counts on a modelled device."""
GAP_SLACK_US = 20.0
ALONE_SLACK_US = 300.0
GAP_SHARE = 0.25
FILL_BYTES = 32 << 20
"""Of the fill that covers launch latency; see the driver."""
FLOOR_MARGIN = 0.85
"""A time below this share of the floor is refused: the peak bandwidth is that of a copy, pure reads are faster."""
SPIN_UP_S = 0.2
"""A GPU at rest takes this long to reach its clock."""
LEAST_SPIN_UP = 3
LEAST_SAMPLES = 40
_VISIT_US = 2000.0
_LONGEST_VISIT = 10


class ImpossibleTime(Exception):
    """A time that no honest kernel has. `reason` goes into the evaluation."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RivalFailed(Exception):
    """The rival, not the candidate, failed while being timed."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Sampled(Protocol):
    """What can be timed: a `Session`, or a stand-in for one."""

    def sample(self, count: int) -> list[Sample]:
        """Time `count` calls, each with a cold L2. Raises RunFailure."""
        ...


@dataclass(frozen=True)
class Rival:
    """A rival's session; its failures cost the comparison, not the candidate."""

    session: Sampled

    def sample(self, count: int) -> list[Sample]:
        """As the session's. Raises RivalFailed."""
        try:
            return self.session.sample(count)
        except RunFailure as failure:
            raise RivalFailed(failure.reason) from failure


@dataclass(frozen=True)
class Stopwatch:
    """Times open sessions on one device; the caller holds `device.exclusive()`.

    Attributes:
        facts: of the device.
        floor_us: roofline floor of the problem.
        max_seconds: wall seconds per comparison.
        clock: seconds, monotonic.
    """

    facts: DeviceFacts
    floor_us: float
    max_seconds: float
    clock: Callable[[], float] = time.monotonic

    @property
    def modelled(self) -> bool:
        """Whether times come from a model."""
        return self.facts.kind is DeviceKind.EMULATED

    @property
    def threshold(self) -> float:
        """Least effect that counts."""
        return MODELLED_THRESHOLD if self.modelled else MEASURED_THRESHOLD

    def time_alone(self, session: Sampled) -> Timing:
        """Time one session. Raises ImpossibleTime and RunFailure."""
        samples = session.sample(1) if self.modelled else self._series(session)
        allowed = 3e6 * FILL_BYTES / self.facts.peak_bandwidth + ALONE_SLACK_US
        self._refuse_impossible(samples, allowed)
        return self._timing(samples)

    def compare(self, candidate: Sampled, rival: Sampled) -> Comparison:
        """Time two sessions in turns. Raises ImpossibleTime about the candidate, and RunFailure."""
        ours: list[Sample] = []
        theirs: list[Sample] = []
        blocks: list[Block] = []
        rule = StopRule(min_blocks=1 if self.modelled else StopRule.min_blocks, max_seconds=self.max_seconds)
        count = 1 if self.modelled else min(self._spin_up(candidate, SPIN_UP_S), self._spin_up(rival, 0.0))
        began = self.clock()
        while not rule.enough(blocks, self.clock() - began):
            a, b = self._block(candidate, rival, count)
            ours += a
            theirs += b
            blocks.append(Block(_device_us(a), _device_us(b)))
        self._refuse_impossible(ours, _gap(theirs))
        speedup = speedup_interval(blocks)
        return Comparison(
            speedup=speedup.estimate,
            low=speedup.low,
            high=speedup.high,
            decision=decide(speedup, self.threshold),
            threshold=self.threshold,
            rival=self._timing(theirs),
            candidate=self._timing(ours),
        )

    def _block(self, candidate: Sampled, rival: Sampled, count: int) -> tuple[list[Sample], list[Sample]]:
        if self.modelled:
            return candidate.sample(1), rival.sample(1)
        first, second = candidate.sample(count), rival.sample(count)
        second += rival.sample(count)
        return first + candidate.sample(count), second

    def _spin_up(self, session: Sampled, seconds: float) -> int:
        """Warm up, and choose how many samples to take per visit: a visit of a short kernel would be all overhead.

        The GPU needs `seconds` of it once; every process needs its first calls, which load its code.
        """
        began, warm = self.clock(), session.sample(LEAST_SPIN_UP)
        while self.clock() - began < seconds:
            warm += session.sample(LEAST_SPIN_UP)
        return int(np.clip(_VISIT_US / max(_median_us(warm), 1.0), 1, _LONGEST_VISIT))

    def _series(self, session: Sampled) -> list[Sample]:
        """Samples of one session until its median is known or time is up."""
        rule, count = StopRule(), self._spin_up(session, SPIN_UP_S)
        wanted = LEAST_SAMPLES
        began, samples = self.clock(), session.sample(count)
        while self.clock() - began < self.max_seconds:
            if len(samples) >= wanted:
                if median_interval(_device_us(samples)).half_width < rule.half_width:
                    break
                wanted += LEAST_SAMPLES
            samples += session.sample(count)
        return samples

    def _refuse_impossible(self, samples: Sequence[Sample], allowed_gap_us: float | None) -> None:
        median = _median_us(samples)
        if median < FLOOR_MARGIN * self.floor_us:
            raise ImpossibleTime(
                f"faster than the hardware allows: {median:.2f} us, but reading the inputs and writing the outputs "
                f"takes at least {self.floor_us:.2f} us"
            )
        gap = _gap(samples)
        if gap is None or allowed_gap_us is None:
            return
        if gap < -max(1.0, 0.02 * median):
            raise ImpossibleTime(f"the clocks disagree: events say {median:.2f} us, the host {-gap:.2f} us less")
        if gap > allowed_gap_us + max(GAP_SLACK_US, GAP_SHARE * median):
            raise ImpossibleTime(
                f"work outside the timed stream: the device stays busy {gap - allowed_gap_us:.0f} us longer than the "
                f"{median:.2f} us between the events"
            )

    def _timing(self, samples: Sequence[Sample]) -> Timing:
        times = _device_us(samples)
        interval = median_interval(times)
        hosts = [sample.host_us for sample in samples if sample.host_us is not None]
        return Timing(
            median_us=interval.estimate,
            low_us=interval.low,
            high_us=interval.high,
            iqr_us=quartile_range(times),
            samples=len(times),
            host_median_us=float(np.median(hosts)) if hosts else None,
            floor_us=self.floor_us,
            floor_fraction=self.floor_us / interval.estimate,
            modelled=self.modelled,
            samples_us=list(times),
        )


def _device_us(samples: Sequence[Sample]) -> tuple[float, ...]:
    return tuple(sample.device_us for sample in samples)


def _median_us(samples: Sequence[Sample]) -> float:
    """Median event time. Raises ImpossibleTime when the clock gave no positive number."""
    median = float(np.median(_device_us(samples)))
    if not 0 < median < np.inf:
        raise ImpossibleTime(f"the clocks disagree: the events say {median} us")
    return median


def _gap(samples: Sequence[Sample]) -> float | None:
    """Median of host minus event time in microseconds; None when there is no host clock."""
    gaps = [sample.host_us - sample.device_us for sample in samples if sample.host_us is not None]
    return float(np.median(gaps)) if gaps else None
