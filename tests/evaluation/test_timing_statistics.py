"""The statistics of timing: coverage, false positives, and what the decision may never do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelblaster.evaluation.results import Decision
from kernelblaster.evaluation.timing.statistics import (
    Interval,
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

times = st.floats(0.5, 1e6, allow_nan=False)


def noisy_blocks(
    rng: np.random.Generator, count: int, *, candidate: float = 100.0, baseline: float = 100.0, noise: float = 0.02
) -> list[SampleBlock]:
    """ABBA blocks under log-normal noise, a slow drift and a shared disturbance per block."""
    blocks = []
    for index in range(count):
        shared = np.exp(rng.normal(0, noise)) * (1 + 0.1 * index / count)
        a, b = (side * shared * np.exp(rng.normal(0, noise, size=4)) for side in (candidate, baseline))
        blocks.append(SampleBlock(tuple(a), tuple(b)))
    return blocks


@given(st.lists(times, min_size=1, max_size=60))
def test_interval_holds_the_median(samples: list[float]) -> None:
    interval = median_interval(samples)
    assert interval.low <= interval.estimate <= interval.high
    assert min(samples) <= interval.low
    assert interval.high <= max(samples)


@given(st.lists(times, min_size=2, max_size=30), st.floats(0.1, 10))
def test_speedup_scales_with_the_baseline(samples: list[float], factor: float) -> None:
    blocks = [SampleBlock((t,), (t * factor,)) for t in samples]
    interval = speedup_interval(blocks)
    assert interval.estimate == pytest.approx(factor)


@given(st.floats(0.5, 2), st.floats(0, 0.3), st.floats(0, 0.3))
def test_decision_is_antisymmetric(estimate: float, below: float, above: float) -> None:
    forward = Interval(estimate, estimate * (1 - below), estimate * (1 + above))
    backward = Interval(1 / forward.estimate, 1 / forward.high, 1 / forward.low)
    swapped = {Decision.FASTER: Decision.SLOWER, Decision.SLOWER: Decision.FASTER}
    assert decide(backward, 0.0101) in {swapped.get(decide(forward, 0.0101), Decision.INCONCLUSIVE)}


def test_interval_covers_the_true_median_at_its_rate() -> None:
    rng = np.random.default_rng(1)
    hits = 0
    for seed in range(300):
        interval = median_interval(list(np.exp(rng.normal(0, 0.05, size=40)) * 100), seed=seed)
        hits += interval.low <= 100 <= interval.high
    assert hits / 300 > 0.90


def test_equal_kernels_are_rarely_told_apart() -> None:
    rng = np.random.default_rng(2)
    verdicts = [decide(speedup_interval(noisy_blocks(rng, 10)), 0.01) for _ in range(300)]
    wrong = sum(verdict is not Decision.INCONCLUSIVE for verdict in verdicts)
    assert wrong / len(verdicts) < 0.05


def test_a_real_gain_is_found_under_drift() -> None:
    rng = np.random.default_rng(3)
    verdicts = [decide(speedup_interval(noisy_blocks(rng, 20, candidate=96, noise=0.01)), 0.01) for _ in range(50)]
    assert verdicts.count(Decision.FASTER) >= 48


def test_an_effect_below_the_threshold_is_inconclusive() -> None:
    blocks = [SampleBlock((100.0,) * 4, (100.5,) * 4)] * 20
    assert speedup_interval(blocks).low > 1
    assert decide(speedup_interval(blocks), 0.01) is Decision.INCONCLUSIVE


@settings(max_examples=25)
@given(st.integers(1, 9))
def test_few_blocks_are_never_enough_before_the_deadline(count: int) -> None:
    blocks = [SampleBlock((1.0,) * 4, (2.0,) * 4)] * count
    assert not StopRule().enough(blocks, 0.1)
    assert StopRule().enough(blocks, 3.0)


def test_quiet_blocks_stop_and_noisy_blocks_go_on() -> None:
    rng = np.random.default_rng(4)
    assert StopRule().enough(noisy_blocks(rng, 10, noise=1e-4), 0.1)
    assert not StopRule().enough(noisy_blocks(rng, 10, noise=0.1), 0.1)
    assert not StopRule().enough([], 10)


def test_no_samples_are_an_error() -> None:
    with pytest.raises(ValueError, match="no samples"):
        median_interval([])
    with pytest.raises(ValueError, match="no blocks"):
        speedup_interval([])


def test_quartile_range() -> None:
    assert quartile_range([1, 2, 3, 4, 5]) == pytest.approx(2)


@pytest.mark.parametrize(
    ("ratios", "decision"),
    [
        ((1.20, 1.21, 1.22, 1.21, 1.20), Decision.FASTER),
        ((0.80, 0.81, 0.82, 0.81, 0.80), Decision.SLOWER),
        ((1.02, 1.03, 1.03, 1.02, 0.99), Decision.INCONCLUSIVE),
        ((1.003, 1.004, 1.003, 1.002, 1.001), Decision.INCONCLUSIVE),
        ((1.005, 1.30, 1.25, 1.20, 1.28), Decision.INCONCLUSIVE),
        ((1.02, 1.30, 1.25, 1.20, 1.28), Decision.FASTER),
        ((0.995, 0.70, 0.75, 0.80, 0.78), Decision.INCONCLUSIVE),
        ((1.5,), Decision.FASTER),
    ],
)
def test_sessions_decide_together_or_not_at_all(ratios: tuple[float, ...], decision: Decision) -> None:
    found, decided = decide_process_pairs(ratios, 0.01)
    assert decided is decision
    assert (found.low, found.high) == (min(ratios), max(ratios))
    assert found.low <= found.estimate <= found.high


def test_no_sessions_decide_nothing() -> None:
    with pytest.raises(ValueError, match="no sessions"):
        decide_process_pairs((), 0.01)


def test_one_pair_of_processes_leaves_more_open_for_short_kernels() -> None:
    assert process_half_width(10.0) > 0.04
    assert process_half_width(100.0) < 0.0055
    assert process_half_width(1e5) == pytest.approx(0.00196, rel=0.01)
    exact = Interval(1.03, 1.03, 1.03)
    assert decide(exact, 0.01) is Decision.FASTER
    assert decide(between_processes(exact, 10.0), 0.01) is Decision.INCONCLUSIVE
    assert decide(between_processes(exact, 100.0), 0.01) is Decision.FASTER


@given(st.floats(0.1, 10), st.floats(0, 0.1), st.floats(0, 0.1), st.floats(1, 1e6))
def test_the_wider_interval_holds_the_narrow_one(ratio: float, below: float, above: float, median_us: float) -> None:
    narrow = Interval(ratio, ratio * (1 - below), ratio * (1 + above))
    wide = between_processes(narrow, median_us)
    assert wide.estimate == narrow.estimate
    assert wide.low < narrow.low
    assert wide.high > narrow.high
    assert wide.half_width >= process_half_width(median_us) * 0.999


def test_kernels_that_differ_by_process_only_are_seldom_told_apart() -> None:
    rng, false = np.random.default_rng(7), 0
    for _ in range(400):
        median = float(np.exp(rng.uniform(np.log(8), np.log(2000))))
        apart = 1 + float(rng.normal(0, 0.23 / median))
        found = between_processes(Interval(apart, apart * 0.998, apart * 1.002), median)
        false += decide(found, 0.01) is not Decision.INCONCLUSIVE
    assert false <= 4
