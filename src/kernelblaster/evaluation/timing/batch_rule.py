"""What batches of calls, timed by the judge alone, say of a claim that rests on a candidate's own clocks.

A batch makes N calls behind fills of memory, each call in a slot of its own, and only the judge takes the time, from
its request until the device is idle. A batch of no calls takes what is not the calls': exchange with the process and
fills. Hence the time of one call

    t = (T(N) - T(0)) / N

in which launches do not show as long as all are issued before the fills end; the judge sees that, too.

**The rule.** Let c and b be the medians by events of candidate and baseline, C and B their times by batches.

- Launches hidden: the claim stands when `C <= c * drift + max(SLACK_US, SHARE * c) + noise`. `drift` is B / b between 1
  and `MOST_DRIFT`: what this GPU loses when calls follow each other without rest. Noise is four standard errors,
  of the baseline's batches and of empty ones, and at most the slack; a candidate could make noise of its own.
- What stands is credited as far as batches bear it out: with a speed-up of B / C at most, and `CREDITED_SHARE` and the
  noise of that ratio more (`Allowance.NOISE`). Its noise is that of the batches and what differs from one pair of
  processes to the next. A candidate that works on streams of its own is credited with B / C alone (`Allowance.NONE`).
- Launches not hidden (a launcher that waits for the GPU): C holds host time that events may leave out, so nothing is
  refused. The speed-up is then no more than B / C says: host time that nothing can hide is part of the time. Launches
  of the baseline alone not hidden: no more than b / C says, for B holds host time then.

**Why there is an allowance, and none for own streams.** B / C is coarser than the ratio of events. Of equal kernels on
an H200 (docs/aa_study.json) it differed from that by 0.4 % of calls above 100 us, 0.7 % between 60 and 100 us, 1.0 %
between 20 and 60 us, 1.5 % between 10 and 20 us and 4.3 % below (root mean squares). To credit all by B / C would take
1 % or more from one honest claim in twenty between 20 and 60 us, and more from shorter calls. But a stream of one's own
gains what is allowed without touching a clock: it waits for what the default stream does, and to record an event is
nothing that it does, so that work can begin when the fills that cover a launch end, before the start event (as CUDA is
documented; not measured by itself). No clock of a single call shows that. In a batch there are no events, and its work
waits for the fills, since guards make each stream a waiting one (`harness/guards`): B / C is right, and the noise of
that figure is what honest kernels with streams bear.

A claim that would be refused, or credited with less, is measured once more, and the measurement that says more for it
counts: what disturbed one does not disturb both, and a lie gains nothing by being looked at twice.

**Why no honest kernel is refused.** Events include what a start and an end cost and find an L2 full of somebody else's
modified lines; in a batch calls follow each other on a busy device, and find nothing better or worse in L2. Launches
cost nothing there or nothing is refused. What remains is a lower clock under load, which the baseline shows as well.

**What it lets through.** A lie of less than `CREDITED_SHARE` and noise: on an H200 some 2 % of a call above 60 us, 3 %
of 40 us, 5 % of 20 us, 9 to 12 % of 9 us. From a candidate with streams of its own it lets the noise of B / C through.
The per-thread default stream has a constant for its handle, and an object that uses it asks for no function: work that
begins early on that one is allowed what every kernel is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from kernelblaster.evaluation.results import BatchEvidence, Comparison
from kernelblaster.evaluation.timing.clock_agreement import ImpossibleTime, TimeFault, standard_error
from kernelblaster.evaluation.timing.statistics import Interval, decide, process_error

SLACK_US, SHARE = 2.0, 0.15
"""By how much a call of a batch may take longer than the events say of a call alone."""
CREDITED_SHARE = 0.01
"""By how much the ratio of events may exceed that of batches, noise apart."""
_MOST_NOISE = 0.02
"""What noise within a measurement counts for at most, as a share."""
MOST_DRIFT = 1.1
"""Most that the baseline's own slowing down in batches excuses."""
IMPROBABLE_SPEEDUP = 3.0
"""More than an accepted step of a search gains, the first one from a naive start apart."""
BLIND_US = 100.0
"""Shorter calls can be moved by half or more within what the judge's clock tolerates of single calls."""
_ERRORS = 4.0
_NORMAL_95 = 1.96
_MEDIAN_OVER_MEAN = 1.2533
"""Standard error of a median of normal values over that of their mean."""


class Allowance(Enum):
    """What a candidate is credited with beyond the ratio of batches."""

    NOISE = "noise"
    """A share, and what noise leaves open."""
    NONE = "none"
    """Nothing: it works on streams of its own."""

    @classmethod
    def of(cls, own_streams: Sequence[str]) -> Allowance:
        """That of a candidate that asks for these functions to work on streams of its own."""
        return cls.NONE if own_streams else cls.NOISE


@dataclass(frozen=True)
class BatchTimes:
    """Batches of one side.

    Attributes:
        call_us: time of one call in each batch, in microseconds.
        calls: of a batch.
        hidden: whether launches were.
        exchange_error_us: standard error of the median that the exchange with the process brings, per call.
    """

    call_us: tuple[float, ...]
    calls: int
    hidden: bool
    exchange_error_us: float

    @property
    def median_us(self) -> float:
        """Of a call."""
        return float(np.median(self.call_us))

    @property
    def error_us(self) -> float:
        """Standard error of the median."""
        return standard_error(self.call_us)


def calls_for_batches(found: Comparison, *, final: bool) -> bool:
    """Whether a claim is to be confirmed: a finalist's, an improbable one, or one of calls that single clocks miss."""
    improbable = found.speedup > IMPROBABLE_SPEEDUP or found.candidate.median_us < BLIND_US
    return found.speedup > 1 and (final or improbable)


Measured = tuple[BatchTimes, BatchTimes]
"""Of the candidate, and of the baseline."""


def is_doubtful(claimed: Comparison, measured: Measured, allowance: Allowance) -> bool:
    """Whether a claim would be refused, or credited with less, if this measurement alone counted."""
    return _contradicts(claimed, measured) or most_speedup(claimed, measured, allowance) < claimed.speedup


def confirmed(claimed: Comparison, measurements: Sequence[Measured], allowance: Allowance) -> Comparison:
    """The comparison with the evidence that says most for it, and no more of a speed-up than that bears out.

    Raises ImpossibleTime when all of them contradict the candidate's clocks.
    """
    ours, theirs = best = max(measurements, key=lambda one: most_speedup(claimed, one, allowance))
    if all(_contradicts(claimed, one) for one in measurements):
        said, allowed = claimed.candidate.median_us, allowed_us(claimed, ours, theirs)
        raise ImpossibleTime(
            TimeFault.MOVED_CLOCKS,
            f"the clocks of the candidate's process are wrong: they say {said:.2f} us of a call, but {ours.calls} "
            f"calls in a row take {ours.median_us:.2f} us each by the judge's clock ({allowed:.2f} us would agree)",
        )
    evidence = BatchEvidence(
        candidate_us=ours.median_us,
        baseline_us=theirs.median_us,
        calls=ours.calls,
        batches=len(ours.call_us),
        launches_hidden=ours.hidden,
        most_speedup=most_speedup(claimed, best, allowance),
    )
    return _bounded(claimed.model_copy(update={"batches": evidence}), best, allowance)


def most_speedup(claimed: Comparison, measured: Measured, allowance: Allowance) -> float:
    """The greatest speed-up that batches bear out.

    Host time of a baseline whose launches were not hidden, while the candidate's were, is no gain of the candidate's:
    its events count where they say less.
    """
    ours, theirs = measured
    if ours.hidden and not theirs.hidden:
        return min(theirs.median_us, claimed.baseline.median_us) / ours.median_us
    speedup = theirs.median_us / ours.median_us
    if allowance is Allowance.NONE or not ours.hidden:
        return speedup
    return speedup * (1 + CREDITED_SHARE) * (1 + _noise(ours, theirs))


def _noise(ours: BatchTimes, theirs: BatchTimes) -> float:
    """How far, as a share, the ratio of batches may lie from that of events in the same pair of processes.

    That of the batches counts for `_MOST_NOISE` at most, and the candidate's own not at all: it could make noise.
    """
    exchange = ours.exchange_error_us / ours.median_us
    within = _NORMAL_95 * float(np.hypot(_error_of_few(theirs.call_us) / theirs.median_us, exchange))
    between = _NORMAL_95 * process_error(min(ours.median_us, theirs.median_us))  # of either ratio
    return float(np.sqrt(min(within, _MOST_NOISE) ** 2 + 2 * between**2))


def _error_of_few(values: Sequence[float]) -> float:
    """Standard error of the median of a few values."""
    return (
        _MEDIAN_OVER_MEAN * float(np.std(values, ddof=1)) / float(np.sqrt(len(values))) if len(values) > 1 else np.inf
    )


def _contradicts(claimed: Comparison, measured: Measured) -> bool:
    ours, theirs = measured
    return ours.hidden and ours.median_us > allowed_us(claimed, ours, theirs)


def allowed_us(claimed: Comparison, ours: BatchTimes, theirs: BatchTimes) -> float:
    """The longest time of a call in a batch, in microseconds, that agrees with the claimed one."""
    said, baseline = claimed.candidate.median_us, claimed.baseline.median_us
    drift = float(np.clip(theirs.median_us / baseline, 1.0, MOST_DRIFT)) if theirs.hidden else 1.0
    noise = _ERRORS * float(np.hypot(ours.exchange_error_us, said / baseline * theirs.error_us))
    slack = max(SLACK_US, SHARE * said)
    return said * drift + slack + min(noise, slack)


def _bounded(found: Comparison, measured: Measured, allowance: Allowance) -> Comparison:
    """With the speed-up of the batches, where that is the smaller one."""
    ours, theirs = measured
    speedup = most_speedup(found, measured, allowance)
    if speedup >= found.speedup:
        return found
    share = _NORMAL_95 * float(np.hypot(ours.error_us / ours.median_us, theirs.error_us / theirs.median_us))
    bounded = Interval(speedup, speedup / (1 + share), speedup * (1 + share))
    update = {"speedup": speedup, "low": bounded.low, "high": bounded.high}
    return found.model_copy(update={**update, "decision": decide(bounded, found.threshold)})


def times(batches: Sequence[tuple[float, bool]], calls: int, empty_us: Sequence[float]) -> BatchTimes:
    """Times of one side from `(microseconds of a call, whether launches were hidden)` of each batch, and empty batches.

    Where launches were hidden in half of the batches at least, these alone count: a host that stumbles now and then
    is no launcher that waits.
    """
    hidden = [us for us, was_hidden in batches if was_hidden]
    if 2 * len(hidden) >= len(batches):
        return BatchTimes(tuple(hidden), calls, True, standard_error(empty_us) / calls)
    return BatchTimes(tuple(us for us, _ in batches), calls, False, standard_error(empty_us) / calls)
