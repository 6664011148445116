"""A candidate beside a time that was not sampled together with its own."""

from __future__ import annotations

from dataclasses import dataclass

from kernelblaster.evaluation.results import Comparison, Evaluation, Timing
from kernelblaster.evaluation.timing.statistics import Interval, decide


@dataclass(frozen=True)
class BaselineTime:
    """What a candidate's time is divided into: microseconds of the whole call with a cold L2.

    Attributes:
        us, low_us, high_us: with its interval, which is a point where it was not measured.
        samples: that it rests on; 0 where it was not measured.
        modelled: it comes from a model.
    """

    us: float
    low_us: float
    high_us: float
    samples: int = 0
    modelled: bool = False

    @classmethod
    def point(cls, us: float) -> BaselineTime:
        """A time that was reckoned and not measured."""
        return cls(us, us, us, modelled=True)


def against_time(evaluation: Evaluation, time: BaselineTime) -> Evaluation:
    """The evaluation with this time as its baseline; without a comparison where the candidate was not timed.

    The interval of the ratio is that of the two intervals' ends, which is wider than a paired one.
    """
    timed = evaluation.timing if evaluation.correct else None
    if timed is None:
        return evaluation.model_copy(update={"comparison": None})
    low, high = time.low_us / timed.high_us, time.high_us / timed.low_us
    threshold = 0.01 if evaluation.comparison is None else evaluation.comparison.threshold
    speedup = Interval(time.us / timed.median_us, low, high)
    baseline = Timing(
        median_us=time.us, low_us=time.low_us, high_us=time.high_us, iqr_us=time.high_us - time.low_us,
        samples=time.samples, floor_us=timed.floor_us, floor_fraction=None, modelled=time.modelled,
    )  # fmt: skip
    comparison = Comparison(
        speedup=speedup.estimate, low=low, high=high, decision=decide(speedup, threshold), threshold=threshold,
        baseline=baseline, candidate=timed,
    )  # fmt: skip
    return evaluation.model_copy(update={"comparison": comparison})
