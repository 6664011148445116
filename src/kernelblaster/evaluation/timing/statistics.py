"""Medians, bootstrap intervals and the decision between two kernels. Pure numpy; knows nothing of devices.

Times of a GPU kernel are skewed and drift with clocks and temperature, so the statistic is the median, its interval
comes from resampling, and two kernels are only compared through samples taken in turns (A B B A): a drift that is
linear over one such block falls on both alike. The block, not the sample, is what the bootstrap resamples, for the
samples inside one block share whatever the machine was doing at that moment.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelblaster.evaluation.results import Decision

CONFIDENCE = 0.95
_NORMAL_95 = 1.96
RESAMPLES = 1000
MOST_SPREAD = 0.05
"""Of the ratios of sessions, relative to their median."""
PROCESS_US, PROCESS_SHARE = 0.25, 0.001
"""Standard deviation, from one pair of processes to the next, of the difference between two medians of one kernel: a
part that is the same for all kernels, in microseconds, and a share of the time. Measured on an H200 (docs/aa_study.md):
what a process happened to get (physical pages, queues) stays with it, so more samples do not remove it."""
LOOK_EVERY = 5
"""Blocks between two looks at the interval: each costs milliseconds, and each is a chance to stop on luck."""


@dataclass(frozen=True)
class Interval:
    """A point estimate with its 95 % interval, in the unit of the samples."""

    estimate: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the interval's width as a share of the estimate."""
        return (self.high - self.low) / (2 * self.estimate)


@dataclass(frozen=True)
class SampleBlock:
    """Samples of one turn, A B B A or B A A B, in microseconds; both sides hold the same number."""

    candidate_us: tuple[float, ...]
    baseline_us: tuple[float, ...]


def quartile_range(samples: Sequence[float]) -> float:
    """Interquartile range, in the unit of the samples."""
    low, high = np.percentile(samples, (25, 75))
    return float(high - low)


def median_interval(samples: Sequence[float], *, seed: int = 0) -> Interval:
    """Median with its percentile-bootstrap interval.

    Raises ValueError when there is no sample. One sample, or samples without spread, give an interval of width zero.
    """
    if not samples:
        raise ValueError("no samples")
    values = np.asarray(samples, dtype=np.float64)
    picks = np.random.default_rng(seed).integers(0, values.size, size=(RESAMPLES, values.size))
    return _percentile_interval(float(np.median(values)), np.median(values[picks], axis=1))


def speedup_interval(blocks: Sequence[SampleBlock], *, seed: int = 0) -> Interval:
    """Ratio of medians, baseline over candidate, with its interval from resampling whole blocks.

    Above 1 the candidate is faster. Blocks must hold equally many samples. Raises ValueError without blocks.
    """
    if not blocks:
        raise ValueError("no blocks")
    candidate = np.asarray([block.candidate_us for block in blocks], dtype=np.float64)
    baseline = np.asarray([block.baseline_us for block in blocks], dtype=np.float64)
    picks = np.random.default_rng(seed).integers(0, len(blocks), size=(RESAMPLES, len(blocks)))
    ratios = _resampled_medians(baseline, picks) / _resampled_medians(candidate, picks)
    return _percentile_interval(float(np.median(baseline) / np.median(candidate)), ratios)


def process_error(median_us: float) -> float:
    """Standard error, as a share, of a ratio that many samples of one pair of processes leave open."""
    return math.hypot(PROCESS_US / median_us, PROCESS_SHARE)


def process_half_width(median_us: float) -> float:
    """Half-width, as a share, of the 95 % interval of such a ratio."""
    return _NORMAL_95 * process_error(median_us)


def between_processes(speedup: Interval, median_us: float) -> Interval:
    """The interval of a ratio found in one pair of processes, widened by what differs from pair to pair.

    Args:
        speedup: of medians, with the interval that samples within the pair give.
        median_us: of the faster side, in microseconds.
    """
    more = process_half_width(median_us) * speedup.estimate
    low = speedup.estimate - math.hypot(speedup.estimate - speedup.low, more)
    high = speedup.estimate + math.hypot(speedup.high - speedup.estimate, more)
    return Interval(estimate=speedup.estimate, low=low, high=high)


def decide(speedup: Interval, threshold: float) -> Decision:
    """Faster or slower only when the interval excludes 1 and the effect is at least `threshold` (0.01 is 1 %)."""
    if speedup.low > 1 and speedup.estimate >= 1 + threshold:
        return Decision.FASTER
    if speedup.high < 1 and speedup.estimate <= 1 / (1 + threshold):
        return Decision.SLOWER
    return Decision.INCONCLUSIVE


def decide_process_pairs(ratios: Sequence[float], threshold: float) -> tuple[Interval, Decision]:
    """Combine the ratios of several pairs of processes: median, least, greatest, and what they decide together.

    Least and greatest of five enclose the median of all such pairs with 94 % confidence, whatever its distribution.
    There is a decision only if they exclude 1, and then only if they agree within `MOST_SPREAD` or each of them alone
    has the least effect that counts: processes that disagree say that something else than the kernels was measured.
    """
    if not ratios:
        raise ValueError("no sessions")
    found = Interval(statistics.median(ratios), min(ratios), max(ratios))
    decision = decide(found, threshold)
    agree = found.high - found.low <= MOST_SPREAD * found.estimate
    if not agree and found.low < 1 + threshold and found.high > 1 / (1 + threshold):
        decision = Decision.INCONCLUSIVE
    return found, decision


@dataclass(frozen=True)
class StopRule:
    """When a comparison has seen enough.

    Attributes:
        min_blocks: fewer are never enough; below about ten, a block bootstrap is too sure of itself.
        half_width: relative half width of the ratio's interval that ends the comparison.
        max_seconds: of wall time, flushes included.
    """

    min_blocks: int = 10
    half_width: float = 0.005
    max_seconds: float = 3.0

    def enough(self, blocks: Sequence[SampleBlock], seconds: float) -> bool:
        """Whether to stop, `seconds` after the first sample."""
        if seconds >= self.max_seconds and blocks:
            return True
        if len(blocks) < self.min_blocks or (len(blocks) - self.min_blocks) % LOOK_EVERY:
            return False
        return speedup_interval(blocks).half_width < self.half_width


def _resampled_medians(values: NDArray[np.float64], picks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Median over the samples of the picked blocks: (blocks, k), (resamples, blocks) -> (resamples,)."""
    return np.median(values[picks].reshape(picks.shape[0], -1), axis=1)


def _percentile_interval(estimate: float, replicates: NDArray[np.float64]) -> Interval:
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(replicates, (tail, 100 - tail))
    return Interval(estimate=estimate, low=min(float(low), estimate), high=max(float(high), estimate))
