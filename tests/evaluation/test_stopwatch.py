"""Clock cross-checks, the floor, and the order of samples."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from random import Random

import numpy as np
import pytest
from fake_device import facts
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelblaster.devices.base import TimingSample
from kernelblaster.devices.facts import DeviceKind, GpuReading
from kernelblaster.devices.failures import RunFailure, RunFailureKind
from kernelblaster.evaluation.inputs.perturbations import PerturbationSchedule
from kernelblaster.evaluation.timing import clock_agreement as clocks
from kernelblaster.evaluation.timing import stopwatch as timing
from kernelblaster.evaluation.timing.baseline_session import BaselineFailed, BaselineSession
from kernelblaster.evaluation.timing.clock_agreement import ImpossibleTime, TimeFault
from kernelblaster.evaluation.timing.stopwatch import Stopwatch

WARM_UPS = 4
"""Visits of both sides before the first turn."""


@pytest.fixture(autouse=True)
def no_spin_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "SPIN_UP_S", 0.0)


class Clocks:
    """A session whose samples come from a function of the sample's number."""

    def __init__(self, sample: Callable[[int], TimingSample], log: list[str] | None = None, name: str = "") -> None:
        self._sample = sample
        self._log = log if log is not None else []
        self._name = name
        self.taken = 0
        self.perturbations: list[int] = []
        self.cover_fills: list[int] = []

    def time_calls(self, perturbations: Sequence[int], cover_fills: int = 1) -> list[TimingSample]:
        self._log.append(self._name)
        self.perturbations += perturbations
        self.cover_fills.append(cover_fills)
        taken = [self._sample(self.taken + i) for i in range(len(perturbations))]
        self.taken += len(perturbations)
        return taken


def steady(device_us: float, gap_us: float = 25.0, noise: float = 0.0, seed: int = 1) -> Clocks:
    rng = np.random.default_rng(seed)

    def sample(_: int) -> TimingSample:
        jitter = float(np.exp(rng.normal(0, noise)))
        late = float(rng.exponential(3 * noise * 100))
        return TimingSample(device_us=device_us * jitter, host_us=device_us * jitter + gap_us + late)

    return Clocks(sample)


def ticking(step_s: float) -> Callable[[], float]:
    ticks: Iterator[float] = iter(step_s * i for i in range(10**9))
    return lambda: next(ticks)


def watch(floor_us: float = 1.0, seconds: float = 0.1, kind: DeviceKind = DeviceKind.CUDA) -> Stopwatch:
    return Stopwatch(facts(kind), floor_us, seconds, ticking(0.001))


def test_samples_are_taken_in_turns() -> None:
    log: list[str] = []
    a, b = (Clocks(lambda _: TimingSample(5000.0, 5030.0), log, name) for name in "ab")
    watch().compare(a, b)
    turns = "".join(log)[WARM_UPS:]
    assert turns == ("abbabaab" * len(turns))[: len(turns)]
    assert len(turns) >= 40


def test_the_gpu_is_warmed_up_once_for_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "SPIN_UP_S", 0.05)
    log: list[str] = []
    a, b = (Clocks(lambda _: TimingSample(5000.0, 5030.0), log, name) for name in "ab")
    watch().compare(a, b)
    first_turn = "".join(log).index("b")
    assert first_turn > 10
    assert "".join(log)[first_turn:].startswith("bbabba")


def test_a_gpu_whose_clock_is_up_is_not_warmed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "SPIN_UP_S", 0.05)
    taken = []
    for mhz in (0.5 * facts().clock_mhz, 0.9 * facts().clock_mhz):
        reading = GpuReading(sm_mhz=mhz, temperature=40.0)
        log: list[str] = []
        a, b = (Clocks(lambda _: TimingSample(5000.0, 5030.0), log, name) for name in "ab")
        dataclasses.replace(watch(), reading=lambda reading=reading: reading).compare(a, b)
        taken.append("".join(log).index("b"))
    assert taken[0] > 10
    assert taken[1] == WARM_UPS / 2


def test_a_slow_kernel_is_its_own_warm_up() -> None:
    slow = Clocks(lambda _: TimingSample(2e6, 2e6))
    Stopwatch(facts(), 1.0, 0.5, ticking(0.3)).time_alone(slow)
    assert slow.taken <= 3


@settings(max_examples=25, deadline=None)
@given(st.floats(2, 20_000), st.floats(2, 20_000), st.floats(15, 60), st.floats(0, 10), st.integers(0, 1000))
def test_honest_pairs_are_never_refused(ours: float, theirs: float, gap: float, other: float, seed: int) -> None:
    comparison = watch().compare(steady(ours, gap + other, 0.03, seed), steady(theirs, gap, 0.03, seed + 1))
    assert comparison.low <= comparison.speedup <= comparison.high
    assert comparison.speedup == pytest.approx(theirs / ours, rel=0.1)


@pytest.mark.parametrize(("seen", "hidden"), [(5.0, 50.0), (5.0, 1000.0), (100.0, 60.0), (1000.0, 900.0)])
def test_hidden_work_is_refused(seen: float, hidden: float) -> None:
    with pytest.raises(ImpossibleTime) as caught:
        watch().compare(steady(seen, 25 + hidden, 0.01), steady(seen + hidden, 25, 0.01))
    assert caught.value.fault is TimeFault.HIDDEN_WORK


def test_hidden_work_is_refused_without_a_baseline() -> None:
    limit = clocks.FILLS_ALONE * timing.LEAST_COVER_FILLS * watch().cover_fill_us + clocks.ALONE_SLACK_US
    assert watch().time_alone(steady(50.0, 0.9 * limit)).median_us == 50.0
    with pytest.raises(ImpossibleTime) as caught:
        watch().time_alone(steady(50.0, limit + 100))
    assert caught.value.fault is TimeFault.HIDDEN_WORK


def test_a_tampered_clock_is_refused() -> None:
    with pytest.raises(ImpossibleTime) as caught:
        watch().compare(steady(100.0, -50.0), steady(100.0))
    assert caught.value.fault is TimeFault.NO_TIME


def seen_by_the_judge(device_us: float, judge_us: float, noise_us: float, seed: int) -> Clocks:
    """Both clocks of the driver agree; the judge's says more, and how much varies from visit to visit."""
    rng = np.random.default_rng(seed)

    class Seen(Clocks):
        def time_calls(self, perturbations: Sequence[int], cover_fills: int = 1) -> list[TimingSample]:
            visit = judge_us + float(rng.exponential(noise_us)) / len(perturbations)
            return [TimingSample(device_us, device_us + 25.0, None, visit) for _ in perturbations]

    return Seen(lambda _: TimingSample(0.0, 0.0))


@pytest.mark.parametrize(("seen", "hidden"), [(20.0, 80.0), (1000.0, 250.0), (50_000.0, 10_000.0)])
def test_clocks_that_were_moved_together_are_refused(seen: float, hidden: float) -> None:
    honest = seen_by_the_judge(seen + hidden, 400.0 + seen + hidden, 100.0, 1)
    with pytest.raises(ImpossibleTime) as caught:
        watch().compare(seen_by_the_judge(seen, 400.0 + seen + hidden, 100.0, 2), honest)
    assert caught.value.fault is TimeFault.MOVED_CLOCKS


@settings(max_examples=25, deadline=None)
@given(st.floats(2, 20_000), st.floats(2, 20_000), st.floats(0, 20_000), st.integers(0, 1000))
def test_a_busy_machine_of_the_judge_refuses_nobody(ours: float, theirs: float, noise: float, seed: int) -> None:
    pair = (seen_by_the_judge(us, 300.0 + us, noise, seed + n) for n, us in enumerate((ours, theirs)))
    assert watch().compare(*pair).speedup == pytest.approx(theirs / ours)


def test_times_below_the_floor_are_refused_and_times_near_it_are_not() -> None:
    assert watch(floor_us=100).time_alone(steady(90.0)).floor_fraction == pytest.approx(100 / 90)
    with pytest.raises(ImpossibleTime) as caught:
        watch(floor_us=100).time_alone(steady(80.0))
    assert caught.value.fault is TimeFault.BELOW_FLOOR


@pytest.mark.parametrize("time_us", [float("nan"), 0.0, -3.0, float("inf")])
def test_a_clock_without_a_time_is_refused(time_us: float) -> None:
    with pytest.raises(ImpossibleTime) as caught:
        watch().time_alone(Clocks(lambda _: TimingSample(time_us, 100.0)))
    assert caught.value.fault is TimeFault.NO_TIME


def test_a_slow_kernel_ends_with_the_time_that_is_allowed() -> None:
    slow, other = steady(1e6), steady(1e6)
    Stopwatch(facts(), 1.0, 3.0, ticking(1.0)).compare(slow, other)
    assert slow.taken < 20


def test_a_modelled_device_gives_one_sample_and_no_noise() -> None:
    ours, theirs = (Clocks(lambda _, t=t: TimingSample(t, None)) for t in (100.0, 104.0))
    comparison = watch(kind=DeviceKind.EMULATED).compare(ours, theirs)
    assert (ours.taken, theirs.taken) == (1, 1)
    assert comparison.low == comparison.high == comparison.speedup == pytest.approx(1.04)
    assert comparison.decision == "inconclusive"
    assert comparison.candidate.host_median_us is None


def test_a_failing_baseline_is_told_apart_from_a_failing_candidate() -> None:
    def fail(_: int) -> TimingSample:
        raise RunFailure(RunFailureKind.RUNTIME, "it crashed")

    with pytest.raises(BaselineFailed, match="crashed"):
        watch().compare(steady(1.0), BaselineSession(Clocks(fail)))
    with pytest.raises(RunFailure):
        watch().compare(Clocks(fail), BaselineSession(steady(1.0)))


def test_launch_latency_is_covered_for_both_by_what_the_slower_launcher_needs() -> None:
    cover_fill_us = watch().cover_fill_us

    def launching(us: float) -> Clocks:
        return Clocks(lambda _: TimingSample(5000.0, 5030.0, us))

    quick, slow = launching(0.1 * cover_fill_us), launching(4.0 * cover_fill_us)
    watch().compare(quick, slow)
    assert quick.cover_fills[2:] == [6] * (len(quick.cover_fills) - 2)
    assert slow.cover_fills[2:] == [6] * (len(slow.cover_fills) - 2)
    endless = launching(1e9)
    watch().time_alone(endless)
    assert max(endless.cover_fills) == timing.MOST_COVER_FILLS


def test_samples_of_a_slow_clock_are_thrown_away_also_when_it_was_slow_first() -> None:
    clocks = [1000.0] * 7 + [1900.0] * 10_000
    readings = iter(clocks)
    now = [0.0]

    def session() -> Clocks:
        return Clocks(lambda _: TimingSample(*(2 * [200.0 if now[0] < 1500 else 100.0])))

    def read() -> GpuReading:
        now[0] = next(readings)
        return GpuReading(sm_mhz=now[0], temperature=40.0)

    timed = dataclasses.replace(watch(seconds=1.0), clock=ticking(0.06), reading=read)
    comparison = dataclasses.replace(timed, max_seconds=20.0).compare(session(), session())
    assert comparison.candidate.conditions is not None
    assert comparison.candidate.conditions.discarded == 6
    # One block was begun at the low clock and read at the high one.
    assert comparison.candidate.samples_us.count(200.0) <= 2 * 10
    assert comparison.candidate.median_us == 100.0


def test_without_a_clock_nothing_is_said_of_it() -> None:
    assert watch().time_alone(steady(50.0)).conditions is None


@given(st.integers(2, 400), st.integers(0, 10_000))
def test_judged_calls_are_spread_over_the_calls_and_each_comes_once(calls: int, seed: int) -> None:
    schedule = PerturbationSchedule((11, 12, 13), random=Random(seed))
    schedule.draw(3)
    schedule.begin(calls)
    early = schedule.draw(calls)
    assert sorted(set(early) & {11, 12, 13}) == [11, 12]
    last = schedule.last_visit(10)
    assert last[-1] == 13
    assert 1 <= len(last) <= 10
    assert schedule.last_visit(10) == []


def test_judged_calls_that_were_never_reached_come_at_the_end() -> None:
    schedule = PerturbationSchedule((11, 12, 13), random=Random(1))
    schedule.begin(1000)
    ends = []
    while visit := schedule.last_visit(5):
        ends.append(visit[-1])
    assert ends == [11, 12, 13]


@pytest.mark.parametrize("baseline", [True, False])
def test_judged_calls_that_take_longer_than_the_others_are_refused(baseline: bool) -> None:
    """A candidate that leaves out most of its calls, and was lucky with those that were judged."""
    checked = (11, 12, 13)

    class Skips(Clocks):
        def time_calls(self, perturbations: Sequence[int], cover_fills: int = 1) -> list[TimingSample]:
            times = [300.0 if perturbation in checked else 100.0 for perturbation in perturbations]
            return [TimingSample(time_us, time_us + 25.0) for time_us in times]

    timed = dataclasses.replace(watch(), schedule=PerturbationSchedule(checked))
    skips = Skips(lambda _: TimingSample(0.0, 0.0))
    with pytest.raises(ImpossibleTime) as caught:
        timed.compare(skips, steady(100.0)) if baseline else timed.time_alone(skips)
    assert caught.value.fault is TimeFault.SKIPPED_WORK


def test_a_block_in_which_a_call_was_judged_does_not_count() -> None:
    looked = []
    schedule = PerturbationSchedule((11, 12, 13), random=Random(3))
    ours, theirs = steady(100.0), steady(100.0)
    timed = dataclasses.replace(watch(), schedule=schedule, look=looked.append)
    comparison = timed.compare(ours, theirs)
    assert sorted(looked) == [11, 12, 13]
    assert looked[-1] == 13
    counted = comparison.candidate.samples
    assert counted < len(ours.perturbations) - 3
    assert ours.perturbations[3 : 3 + counted] == theirs.perturbations[3 : 3 + counted]
