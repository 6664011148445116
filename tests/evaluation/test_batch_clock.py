"""Batches against simulated GPUs whose true times are known: lies are refused, honest kernels never."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np
import pytest
from fake_device import facts
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelblaster.devices.base import BatchTime
from kernelblaster.evaluation.results import Comparison, Decision, Timing
from kernelblaster.evaluation.timing.batch_clock import BatchClock
from kernelblaster.evaluation.timing.batch_rule import (
    SHARE,
    Allowance,
    BatchTimes,
    calls_for_batches,
    confirmed,
    is_doubtful,
    most_speedup,
)
from kernelblaster.evaluation.timing.clock_agreement import ImpossibleTime

CHECKED = (11, 12, 13)
FILL_US = 2 * 2**16 / 1e9 * 1e6 * 1.2
"""Of the GPU of `facts`, a fifth above what the judge knows to be the least."""


@dataclass
class SimulatedProcess:
    """A host that launches and a GPU that works through its queue; `waits`: the launcher waits for every call."""

    gpu_us: float
    launch_us: float = 3.0
    jitter_us: float = 4.0
    waits: bool = False
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))
    prepared: list[list[int]] = field(default_factory=list)
    selected: list[int] = field(default_factory=list)

    def prepare_batch(self, perturbations: Sequence[int]) -> None:
        assert 0 not in perturbations
        self.prepared.append(list(perturbations))

    def run_batch(self, calls: int, fills: int) -> BatchTime:
        assert calls == 0 or calls <= len(self.prepared[-1])
        host, gpu = 8.0, 8.0 + fills * FILL_US
        for _ in range(calls):
            host += self.launch_us
            gpu = max(gpu, host) + self.gpu_us * float(np.exp(self.random.normal(0, 0.01)))
            host = max(host, gpu) if self.waits else host
        replies = 12.0 + float(self.random.exponential(self.jitter_us)) if self.jitter_us else 12.0
        return BatchTime(issued_us=host, done_us=max(host, gpu) + replies)

    def select_slot(self, slot: int) -> None:
        self.selected.append(slot)


def timing(us: float) -> Timing:
    return Timing(
        median_us=us, low_us=us, high_us=us, iqr_us=0, samples=40, floor_us=None, floor_fraction=None, modelled=False
    )


def claim(candidate_us: float, baseline_us: float) -> Comparison:
    speedup = baseline_us / candidate_us
    return Comparison(
        speedup=speedup, low=speedup * 0.99, high=speedup * 1.01, decision=Decision.FASTER, threshold=0.01,
        baseline=timing(baseline_us), candidate=timing(candidate_us),
    )  # fmt: skip


def confirm(
    claimed: Comparison,
    candidate: SimulatedProcess,
    baseline: SimulatedProcess,
    allowance: Allowance = Allowance.NOISE,
) -> Comparison:
    looked: list[int] = []
    clock = BatchClock(facts(), 1 << 12, CHECKED, looked.append, random=Random(3), clock=iter(range(10**6)).__next__)
    found = clock.confirm(claimed, candidate, baseline, allowance)
    assert looked
    return found


@settings(max_examples=60, deadline=None)
@given(
    gpu_us=st.floats(2, 3000),
    gain=st.floats(1.01, 50),
    launch_us=st.floats(1, 60),
    jitter_us=st.floats(0, 30),
    seed=st.integers(0, 100),
)
def test_an_honest_claim_stands_however_slow_its_launcher(
    gpu_us: float, gain: float, launch_us: float, jitter_us: float, seed: int
) -> None:
    random = np.random.default_rng(seed)
    candidate = SimulatedProcess(gpu_us, launch_us, jitter_us, random=random)
    baseline = SimulatedProcess(gpu_us * gain, 3.0, jitter_us, random=random)
    found = confirm(claim(gpu_us + 1.0, gpu_us * gain + 1.0), candidate, baseline)
    assert found.batches is not None
    assert found.batches.launches_hidden
    assert found.decision is Decision.FASTER
    assert found.batches.candidate_us == pytest.approx(gpu_us, abs=0.3 + 3 * jitter_us / 10, rel=0.05)


@settings(max_examples=60, deadline=None)
@given(true_us=st.floats(8, 3000), claimed_share=st.floats(0.01, 0.6), seed=st.integers(0, 100))
def test_moved_events_are_refused_however_short_the_call(true_us: float, claimed_share: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    candidate = SimulatedProcess(true_us, random=random)
    with pytest.raises(ImpossibleTime) as refused:
        confirm(claim(true_us * claimed_share, true_us), candidate, SimulatedProcess(true_us, random=random))
    assert f"{true_us * claimed_share:.2f}" in refused.value.reason


@settings(max_examples=60, deadline=None)
@given(true_us=st.floats(8, 3000), share=st.floats(0.86, 0.99), seed=st.integers(0, 100))
def test_a_small_lie_is_credited_with_little_more_than_the_truth(true_us: float, share: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    candidate, baseline = SimulatedProcess(true_us, random=random), SimulatedProcess(2 * true_us, random=random)
    try:
        found = confirm(claim(true_us * share, 2 * true_us), candidate, baseline)
    except ImpossibleTime:
        assert share * (1 + SHARE) < 1, "only a lie beyond the slack is refused"
        return
    assert found.decision is Decision.FASTER
    assert found.speedup <= 2 / share + 1e-9
    assert found.speedup <= 2 * 1.03 * (1.03 + 0.7 / true_us) * 1.02  # the last is noise of the simulated batches


@settings(max_examples=60, deadline=None)
@given(true_us=st.floats(8, 100), early_us=st.floats(0.2, 2), seed=st.integers(0, 100))
def test_who_begins_early_on_a_stream_is_credited_with_what_batches_say_and_no_more(
    true_us: float, early_us: float, seed: int
) -> None:
    """Beside an equal kernel: what single calls gain by beginning before the start event is no speed-up."""
    claimed = claim(true_us - early_us, true_us)
    found = {}
    for allowance in Allowance:
        random = np.random.default_rng(seed)
        sides = [SimulatedProcess(true_us, random=random) for _ in range(2)]
        found[allowance] = confirm(claimed, *sides, allowance)
    bare = found[Allowance.NONE]
    assert bare.batches is not None
    assert bare.speedup == min(claimed.speedup, bare.batches.baseline_us / bare.batches.candidate_us)
    assert bare.speedup <= 1.02 + 0.3 / true_us, "noise of the simulated batches alone"
    assert found[Allowance.NOISE].speedup >= bare.speedup


@settings(max_examples=60, deadline=None)
@given(
    candidate_us=st.floats(2, 3000),
    gain=st.floats(1.05, 50),
    loss=st.floats(0.9, 1.14),
    hidden=st.booleans(),
    baseline_noise=st.floats(0, 0.2),
)
def test_streams_cost_the_allowance_and_nothing_else(
    candidate_us: float, gain: float, loss: float, hidden: bool, baseline_noise: float
) -> None:
    """`loss`: a call of a batch over what the events say. What is refused does not depend on the allowance."""
    claimed = claim(candidate_us, candidate_us * gain)
    theirs = [candidate_us * gain * (1 + sign * baseline_noise) for sign in (-1, 0, 0, 0, 1)]
    measured = BatchTimes((candidate_us * loss,) * 5, 20, hidden, 0.0), BatchTimes(tuple(theirs), 20, hidden, 0.0)
    bare, allowed = (confirmed(claimed, [measured], one) for one in (Allowance.NONE, Allowance.NOISE))
    assert bare.speedup == pytest.approx(min(claimed.speedup, gain / loss))
    assert bare.speedup <= allowed.speedup <= claimed.speedup
    if loss <= 1 or not hidden:
        assert allowed.speedup == pytest.approx(bare.speedup), "there is nothing to allow"
    assert is_doubtful(claimed, measured, Allowance.NONE) == (
        most_speedup(claimed, measured, Allowance.NONE) < claimed.speedup
    )


def test_a_candidate_without_streams_keeps_its_allowance() -> None:
    assert Allowance.of(()) is Allowance.NOISE
    assert Allowance.of(("cudaStreamCreate",)) is Allowance.NONE


@dataclass
class Disturbed(SimulatedProcess):
    """Its first so many batches take half as long again."""

    disturbed: int = 0

    def run_batch(self, calls: int, fills: int) -> BatchTime:
        self.disturbed -= 1
        usual = self.gpu_us
        self.gpu_us *= 1.5 if self.disturbed >= 0 else 1.0
        try:
            return super().run_batch(calls, fills)
        finally:
            self.gpu_us = usual


def test_one_disturbed_measurement_takes_nothing_from_an_honest_kernel() -> None:
    """It would be refused, where claims were judged by the first measurement alone."""
    found = confirm(claim(31.0, 61.0), Disturbed(30.0, disturbed=8), SimulatedProcess(60.0))
    assert found.speedup == claim(31.0, 61.0).speedup
    with pytest.raises(ImpossibleTime):
        confirm(claim(31.0, 61.0), Disturbed(30.0, disturbed=1000), SimulatedProcess(60.0))


def test_twenty_microseconds_that_claim_to_be_ten_are_refused_beside_a_slow_and_throttled_baseline() -> None:
    with pytest.raises(ImpossibleTime):
        confirm(claim(10.0, 20_000.0), SimulatedProcess(20.0), SimulatedProcess(30_000.0))


@pytest.mark.parametrize("gpu_us", [5.0, 40.0])
def test_a_launcher_that_waits_is_not_refused_but_gets_what_batches_say(gpu_us: float) -> None:
    candidate = SimulatedProcess(gpu_us, launch_us=15.0, waits=True)
    found = confirm(claim(gpu_us, 80.0), candidate, SimulatedProcess(80.0))
    assert found.batches is not None
    assert not found.batches.launches_hidden
    assert found.speedup == pytest.approx(80.0 / (gpu_us + 15.0), rel=0.15)
    assert found.low < found.speedup < found.high


def test_host_time_of_a_baseline_that_waits_is_no_gain_of_a_candidate_that_does_not() -> None:
    baseline = SimulatedProcess(30.0, launch_us=15.0, waits=True)
    found = confirm(claim(18.0, 31.0), SimulatedProcess(20.0), baseline)
    assert found.speedup <= 31.0 / 20.0 * 1.03


def test_who_claims_that_long_calls_are_short_has_the_gpu_for_few_of_them() -> None:
    calls: list[int] = []

    class Counting(SimulatedProcess):
        def run_batch(self, number: int, fills: int) -> BatchTime:
            calls.append(number)
            return super().run_batch(number, fills)

    with pytest.raises(ImpossibleTime):
        confirm(claim(39.0, 80.0), Counting(110_000.0), SimulatedProcess(80.0))
    assert sum(calls) < 60, "seconds, not minutes"


def test_noise_of_its_own_making_excuses_no_candidate() -> None:
    candidate = SimulatedProcess(20.0)

    class Erratic(SimulatedProcess):
        def run_batch(self, calls: int, fills: int) -> BatchTime:
            candidate.gpu_us = float(candidate.random.choice([20.0, 400.0]))
            return candidate.run_batch(calls, fills)

    with pytest.raises(ImpossibleTime):
        confirm(claim(5.0, 20.0), Erratic(20.0, prepared=candidate.prepared), SimulatedProcess(20.0))


def test_waiting_gains_a_liar_nothing() -> None:
    liar = SimulatedProcess(20.0, waits=True)
    found = confirm(claim(2.0, 20.0), liar, SimulatedProcess(20.0))
    assert found.decision is not Decision.FASTER


def test_both_sides_get_the_same_values_and_the_last_call_of_one_batch_is_judged() -> None:
    candidate, baseline = SimulatedProcess(40.0), SimulatedProcess(60.0)
    confirm(claim(40.0, 60.0), candidate, baseline)
    for ours, theirs in zip(candidate.prepared[1:], baseline.prepared[1:], strict=True):
        both = min(len(ours), len(theirs))
        assert ours[:both] == theirs[:both]
    (judged,) = [batch for batch in candidate.prepared if set(CHECKED) & set(batch)]
    assert judged[-1] in CHECKED
    assert set(CHECKED) <= set(judged)
    assert [judged[slot] in CHECKED for slot in candidate.selected] == [True] * 3
    assert not baseline.selected
    values = [one for batch in candidate.prepared for one in batch]
    assert len(set(values)) == len(values)


def test_batches_are_asked_for_where_single_clocks_are_blind_and_of_finalists() -> None:
    assert calls_for_batches(claim(20.0, 30.0), final=False)
    assert calls_for_batches(claim(200.0, 900.0), final=False)
    assert not calls_for_batches(claim(200.0, 300.0), final=False)
    assert calls_for_batches(claim(200.0, 300.0), final=True)
    assert not calls_for_batches(claim(300.0, 200.0), final=True)
