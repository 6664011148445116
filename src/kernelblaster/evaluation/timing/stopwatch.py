"""How long a call takes, and which of two kernels is faster.

Two processes are sampled in turns A B B A and B A A B, each sample with a cold L2 and with values and addresses of its
own (`perturbations`), until the interval of the ratio is narrow or time is up. Between turns the GPU rests while the
judge computes; so neither side may always be the first to be called after that. To what the samples leave open is added
what would differ in another pair of processes (`statistics.between_processes`): for kernels of ten microseconds that is
5 %. A modelled device gives the same time every time: it is asked once, and its effects must be larger.

Launch latency is no part of the time: a call is launched behind short fills of memory, enough of them to cover the
host time of the slower launcher (up to `MOST_COVER_FILLS`; a launcher that waits for the GPU cannot be covered). Both
kernels are launched behind equally many.

The GPU's clock is read between blocks (through NVML, where the device has it). Samples taken while it ran below
`LEAST_CLOCK` of the highest clock seen are thrown away. Clocks are never set.

Times that no honest kernel has are refused: `clocks` compares three clocks with each other and the time with the
roofline floor, and calls whose results were judged must take no longer than the others.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from kernelblaster.devices.base import TimingSample
from kernelblaster.devices.facts import DeviceFacts, DeviceKind, GpuReading
from kernelblaster.evaluation.inputs.perturbations import CHECKED, InspectedSession, PerturbationSchedule
from kernelblaster.evaluation.results import Comparison, ProcessPairRatio, Timing
from kernelblaster.evaluation.timing.clock_agreement import (
    ALONE_SLACK_US,
    FILLS_ALONE,
    ImpossibleTime,
    TimeFault,
    device_us,
    harness_gap,
    median_us,
    refuse_below_floor,
    refuse_hidden_work,
    refuse_moved_clocks,
)
from kernelblaster.evaluation.timing.conditions import LEAST_CLOCK, Conditioned, Readings
from kernelblaster.evaluation.timing.statistics import (
    SampleBlock,
    StopRule,
    between_processes,
    decide,
    decide_process_pairs,
    median_interval,
    process_half_width,
    quartile_range,
    speedup_interval,
)

MEASURED_THRESHOLD = 0.01
"""Least effect that counts on a GPU."""
MODELLED_THRESHOLD = 0.05
"""Least effect that counts on a modelled device."""
COVER_FILL_BYTES = 32 << 20
"""Of a fill that covers launch latency; see the driver."""
LEAST_COVER_FILLS, MOST_COVER_FILLS = 5, 12
"""Some 40 and 90 microseconds on an H200. Fewer let a slow host thread into the times of short kernels now and then;
host work beyond the most is paid for."""
COVER = 1.5
"""Time of the fills over the host time of the launcher that they cover."""
CHECKS_FACTOR, CHECKS_SLACK_US = 1.5, 5.0
"""By how much the median of the judged calls may exceed that of all."""
SPIN_UP_S = 0.2
"""A GPU at rest takes this long to reach its clock."""
LEAST_SPIN_UP = 3
SLOW_US = 50_000.0
"""A call that takes longer warms up by itself, as nearly all of it comes after its first moments."""
LEAST_SAMPLES = 40
_VISIT_US = 2000.0
_LONGEST_VISIT = 10


def clock_is_up(facts: DeviceFacts, reading: GpuReading | None) -> bool:
    """Whether the GPU runs at its clock, since others have used it until now; False where nobody knows."""
    return reading is not None and reading.sm_mhz >= LEAST_CLOCK * facts.clock_mhz


def cover_fill_us(facts: DeviceFacts) -> float:
    """Time of one fill that covers launch latency, in microseconds, at least."""
    return 1e6 * COVER_FILL_BYTES / facts.peak_bandwidth


def fills_that_cover(enqueue_us: float, fill_us: float) -> int:
    """How many fills a call is launched behind, so that its launcher's host time does not show."""
    return int(np.clip(np.ceil(COVER * enqueue_us / fill_us), LEAST_COVER_FILLS, MOST_COVER_FILLS))


class Timeable(Protocol):
    """What can be timed: a `Session`, or a stand-in for one."""

    def time_calls(self, perturbations: Sequence[int], cover_fills: int = 1) -> list[TimingSample]:
        """Time one call per perturbation, each with a cold L2. Raises RunFailure."""
        ...


@dataclass(frozen=True)
class _Pace:
    """How a comparison is sampled: calls per visit, the fills that each is launched behind, and how short calls are."""

    count: int
    cover_fills: int
    shortest_us: float


@dataclass(frozen=True)
class Stopwatch:
    """Times open sessions on one device; the caller holds `device.exclusive()`.

    Attributes:
        facts: of the device.
        floor_us: roofline floor of the problem; None where it is not known.
        max_seconds: wall seconds per comparison.
        clock: seconds, monotonic.
        reading: clock and temperature of the GPU now; None where it cannot be read.
        schedule: values of the calls, and which of them are judged; one comparison uses it up.
        look: keeps the outputs of the candidate's last call, which had this perturbation.
        attainable_us: what a well-written kernel is expected to reach; told with each time.
    """

    facts: DeviceFacts
    floor_us: float | None
    max_seconds: float
    clock: Callable[[], float] = time.monotonic
    reading: Callable[[], GpuReading | None] = lambda: None
    schedule: PerturbationSchedule = field(default_factory=PerturbationSchedule)
    look: Callable[[int], None] = lambda perturbation: None
    attainable_us: float | None = None

    @property
    def modelled(self) -> bool:
        """Whether times come from a model."""
        return self.facts.kind is DeviceKind.EMULATED

    @property
    def threshold(self) -> float:
        """Least effect that counts."""
        return MODELLED_THRESHOLD if self.modelled else MEASURED_THRESHOLD

    @property
    def cover_fill_us(self) -> float:
        """Time of one fill in microseconds, at least."""
        return cover_fill_us(self.facts)

    def time_alone(self, session: Timeable) -> Timing:
        """Time one session. Raises ImpossibleTime and RunFailure."""
        watched = InspectedSession(session.time_calls, self.look, self.schedule.checked)
        readings = Readings(self.reading, self.clock)
        if self.modelled:
            self.schedule.begin(1)
            visits, cover_fills = [Conditioned(watched.time_calls(self.schedule.draw(1)), None)], 1
        else:
            visits, cover_fills = self._series(watched, readings)
        samples = [sample for visit in readings.kept(visits) for sample in visit]
        self._refuse_slow_checks(samples, watched)
        self._refuse_below_floor(samples)
        refuse_hidden_work(samples, FILLS_ALONE * cover_fills * self.cover_fill_us + ALONE_SLACK_US)
        return self._timing(samples, readings)

    def compare(self, candidate: Timeable, baseline: Timeable) -> Comparison:
        """Time two sessions in turns. Raises ImpossibleTime about the candidate, and RunFailure."""
        watched = InspectedSession(candidate.time_calls, self.look, self.schedule.checked)
        readings = Readings(self.reading, self.clock)
        pace = _Pace(1, 1, math.inf) if self.modelled else self._pace(candidate, baseline)
        rule = self._rule(pace)
        taken: list[Conditioned[_Turn]] = []
        self.schedule.begin(1 if self.modelled else 2 * pace.count * rule.min_blocks)
        began = self.clock()
        while not rule.enough([turn.block for turn in readings.kept(taken)], self.clock() - began):
            looks, before = watched.looks, self.clock()
            turn = self._turn(watched, baseline, pace, baseline_first=len(taken) % 2 == 1)
            if watched.looks == looks or self.modelled:
                taken.append(Conditioned(turn, readings.take()))
            else:
                began += self.clock() - before
        self._last_visits(watched, pace)
        turns = readings.kept(taken)
        ours = [sample for turn in turns for sample in turn.ours]
        theirs = [sample for turn in turns for sample in turn.theirs]
        self._refuse_slow_checks(ours, watched)
        self._refuse_below_floor(ours)
        refuse_hidden_work(ours, harness_gap(theirs))
        refuse_moved_clocks(ours, theirs)
        speedup = speedup_interval([turn.block for turn in turns])
        if not self.modelled:
            speedup = between_processes(speedup, min(median_us(ours), median_us(theirs)))
        return Comparison(
            speedup=speedup.estimate,
            low=speedup.low,
            high=speedup.high,
            decision=decide(speedup, self.threshold),
            threshold=self.threshold,
            baseline=self._timing(theirs, readings),
            candidate=self._timing(ours, readings),
        )

    def _turn(self, candidate: Timeable, baseline: Timeable, pace: _Pace, *, baseline_first: bool) -> _Turn:
        """One A B B A, or B A A B; the n-th call of either side has the n-th perturbation."""
        count, cover_fills = pace.count, pace.cover_fills
        perturbations = self.schedule.draw(1 if self.modelled else 2 * count)
        if self.modelled:
            return _Turn(candidate.time_calls(perturbations), baseline.time_calls(perturbations))
        outer, inner = (baseline, candidate) if baseline_first else (candidate, baseline)
        first, last = perturbations[:count], perturbations[count:]
        outside = outer.time_calls(first, cover_fills)
        inside = inner.time_calls(first, cover_fills) + inner.time_calls(last, cover_fills)
        outside += outer.time_calls(last, cover_fills)
        return _Turn(inside, outside) if baseline_first else _Turn(outside, inside)

    def _pace(self, *sessions: Timeable) -> _Pace:
        """Warm up, and choose how many samples to take per visit: a visit of a short kernel would be all overhead.

        The GPU needs `SPIN_UP_S` of it once, unless its clock is up; every process needs its first calls, which load
        its code.
        """
        medians, enqueue = [], 0.0
        seconds = 0.0 if clock_is_up(self.facts, self.reading()) else SPIN_UP_S
        for place, session in enumerate(sessions):
            warm = self._spin_up(session, seconds if place == 0 else 0.0)
            medians.append(median_us(warm))
            enqueue = max([enqueue, *(sample.enqueue_us or 0.0 for sample in warm[-LEAST_SPIN_UP:])])
        cover_fills = fills_that_cover(enqueue, self.cover_fill_us)
        count = int(np.clip(_VISIT_US / max(*medians, 1.0), 1, _LONGEST_VISIT))
        return _Pace(count, cover_fills, min(medians))

    def _rule(self, pace: _Pace) -> StopRule:
        """Samples make the interval as narrow as is wanted together with what they cannot tell of other processes."""
        if self.modelled:
            return StopRule(min_blocks=1, max_seconds=self.max_seconds)
        # A little less than what is wanted: the medians of the warm-up are not those of the comparison.
        wanted, open_width = 0.98 * StopRule.half_width, process_half_width(pace.shortest_us)
        left = math.sqrt(max(wanted**2 - open_width**2, (wanted / 5) ** 2)) if open_width < wanted else wanted
        return StopRule(half_width=left, max_seconds=self.max_seconds)

    def _spin_up(self, session: Timeable, seconds: float) -> list[TimingSample]:
        began, warm = self.clock(), session.time_calls(self.schedule.draw(1))
        if warm[0].device_us > SLOW_US:
            return warm
        warm += session.time_calls(self.schedule.draw(LEAST_SPIN_UP - 1))
        while self.clock() - began < seconds:
            warm += session.time_calls(self.schedule.draw(LEAST_SPIN_UP))
        return warm

    def _series(
        self, session: InspectedSession, readings: Readings
    ) -> tuple[list[Conditioned[list[TimingSample]]], int]:
        """Visits of one session until its median is known or time is up, and the fills that they had."""
        rule, pace = StopRule(), self._pace(session)
        wanted = LEAST_SAMPLES
        self.schedule.begin(wanted)
        visits: list[Conditioned[list[TimingSample]]] = []
        samples: list[TimingSample] = []
        began = self.clock()
        while not samples or self.clock() - began < self.max_seconds:
            if len(samples) >= wanted:
                if median_interval(device_us(samples)).half_width < rule.half_width:
                    break
                wanted += LEAST_SAMPLES
            looks, before = session.looks, self.clock()
            visit = session.time_calls(self.schedule.draw(pace.count), pace.cover_fills)
            if session.looks == looks:
                visits.append(Conditioned(visit, readings.take()))
                samples = [sample for kept in readings.kept(visits) for sample in kept]
            else:
                began += self.clock() - before
        self._last_visits(session, pace)
        return visits, pace.cover_fills

    def _last_visits(self, session: Timeable, pace: _Pace) -> None:
        """Calls after the last measured one, of which some are judged."""
        while visit := self.schedule.last_visit(pace.count):
            session.time_calls(visit, pace.cover_fills)

    def _refuse_below_floor(self, samples: Sequence[TimingSample]) -> None:
        if self.floor_us is not None:
            refuse_below_floor(samples, self.floor_us)

    def _refuse_slow_checks(self, samples: Sequence[TimingSample], watched: InspectedSession) -> None:
        if len(watched.judged) < CHECKED:
            return
        judged, median = median_us(watched.judged), median_us(samples)
        if judged > CHECKS_FACTOR * median + CHECKS_SLACK_US:
            raise ImpossibleTime(
                TimeFault.SKIPPED_WORK,
                f"timed calls leave out work: those whose results were judged took {judged:.2f} us, the others "
                f"{median:.2f} us",
            )

    def _timing(self, samples: Sequence[TimingSample], readings: Readings) -> Timing:
        times = device_us(samples)
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
            floor_fraction=None if self.floor_us is None else self.floor_us / interval.estimate,
            attainable_us=self.attainable_us,
            modelled=self.modelled,
            executed_share=min(sample.executed_share for sample in samples),
            samples_us=list(times),
            conditions=readings.summary(),
        )


def combined(comparisons: Sequence[Comparison]) -> Comparison:
    """One comparison out of those of several pairs of processes; see `statistics.decide_sessions`."""
    threshold = comparisons[0].threshold
    found, decision = decide_process_pairs([one.speedup for one in comparisons], threshold)
    middle = min(comparisons, key=lambda one: abs(one.speedup - found.estimate))
    sessions = [
        ProcessPairRatio(speedup=one.speedup, low=one.low, high=one.high, conditions=one.candidate.conditions)
        for one in comparisons
    ]
    return Comparison(
        speedup=found.estimate,
        low=found.low,
        high=found.high,
        decision=decision,
        threshold=threshold,
        baseline=middle.baseline,
        candidate=middle.candidate,
        sessions=sessions,
        batches=middle.batches,
    )


@dataclass(frozen=True)
class _Turn:
    """Samples of one A B B A, or B A A B."""

    ours: list[TimingSample]
    theirs: list[TimingSample]

    @property
    def block(self) -> SampleBlock:
        """Their event times."""
        return SampleBlock(device_us(self.ours), device_us(self.theirs))
