"""Do the clocks agree? Refuses times that no honest kernel has: below the floor, or contradicted by another clock.

Three clocks see a timed call. CUDA events stand before and behind it; the driver's host clock runs until the whole
device is idle; the judge's own clock, in another process, runs from the request to the reply. A candidate shares the
driver's address space: it can move events and host clock, but not the judge's. What a clock says beyond the events,

    driver's gap = host time - event time           = the fill + two driver round trips
    judge's gap  = visit / calls - event time       = the fill, the flush, new inputs, and the exchange with the process

does not depend on the kernel: host work inside the launcher lies between the events. Only what the events do not see
(another stream, a detached graph, a start that was moved) makes a gap grow. So its median is compared with that of the
baseline, timed in turns on the same machine, and may exceed it by `GAP_SLACK_US` (`JUDGE_SLACK_US` for the judge's
gap, plus what its own noise explains) or by `GAP_SHARE` of the event time, whichever is more. Without a baseline only
the harness's gap is bounded, by one and a half times the launch cover and `ALONE_SLACK_US`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import groupby

import numpy as np

from kernelblaster.devices.base import TimingSample

GAP_SLACK_US = 20.0
JUDGE_SLACK_US = 50.0
ALONE_SLACK_US = 300.0
FILLS_ALONE = 1.5
"""Time of the fills over what peak bandwidth needs: 1.2 on an H200."""
GAP_SHARE = 0.1
FLOOR_MARGIN = 0.85
"""A time below this share of the floor is refused: the peak bandwidth is that of a copy, pure reads are faster."""
_ERRORS = 4.0
"""Standard errors of a median that noise explains."""
_MEDIAN_ERROR = 1.2533 * 1.4826
"""Standard error of a median of normal values times sqrt(n), over their median absolute deviation."""


class TimeFault(StrEnum):
    """What is impossible about a time."""

    NO_TIME = "no time"
    """The events give no positive number, or the host's clock less than the events."""
    HIDDEN_WORK = "hidden work"
    """The device is busy outside the timed stream."""
    MOVED_CLOCKS = "moved clocks"
    """The judge's clock says more than both clocks of the candidate's process."""
    BELOW_FLOOR = "below floor"
    """Memory and arithmetic units cannot be as fast."""
    SKIPPED_WORK = "skipped work"
    """Calls whose results are judged take longer than the others."""


class ImpossibleTime(Exception):
    """A time that no honest kernel has. `reason` goes into the evaluation."""

    def __init__(self, fault: TimeFault, reason: str) -> None:
        super().__init__(reason)
        self.fault = fault
        self.reason = reason


def device_us(samples: Sequence[TimingSample]) -> tuple[float, ...]:
    """Event times."""
    return tuple(sample.device_us for sample in samples)


def median_us(samples: Sequence[TimingSample]) -> float:
    """Median event time. Raises ImpossibleTime when the clock gave no positive number."""
    median = float(np.median(device_us(samples)))
    if not 0 < median < np.inf:
        raise ImpossibleTime(TimeFault.NO_TIME, f"the clocks disagree: the events say {median} us")
    return median


def harness_gap(samples: Sequence[TimingSample]) -> float | None:
    """Median of host minus event time in microseconds; None when there is no host clock."""
    gaps = [sample.host_us - sample.device_us for sample in samples if sample.host_us is not None]
    return float(np.median(gaps)) if gaps else None


def refuse_below_floor(samples: Sequence[TimingSample], floor_us: float) -> None:
    """Raises ImpossibleTime when the median is faster than memory and arithmetic units allow."""
    median = median_us(samples)
    if median < FLOOR_MARGIN * floor_us:
        raise ImpossibleTime(
            TimeFault.BELOW_FLOOR,
            f"faster than the hardware allows: {median:.2f} us, but reading the inputs and writing the outputs "
            f"takes at least {floor_us:.2f} us",
        )


def refuse_hidden_work(samples: Sequence[TimingSample], allowed_gap_us: float | None) -> None:
    """Raises ImpossibleTime when the driver's gap exceeds the one that is allowed, or the clocks run backwards."""
    median, gap = median_us(samples), harness_gap(samples)
    if gap is None or allowed_gap_us is None:
        return
    if gap < -max(1.0, 0.02 * median):
        raise ImpossibleTime(
            TimeFault.NO_TIME, f"the clocks disagree: events say {median:.2f} us, the host {-gap:.2f} us less"
        )
    if gap > allowed_gap_us + max(GAP_SLACK_US, GAP_SHARE * median):
        raise ImpossibleTime(
            TimeFault.HIDDEN_WORK,
            f"work outside the timed stream: the device stays busy {gap - allowed_gap_us:.0f} us longer than the "
            f"{median:.2f} us between the events",
        )


def refuse_moved_clocks(ours: Sequence[TimingSample], theirs: Sequence[TimingSample]) -> None:
    """Raises ImpossibleTime when calls took longer by the judge's clock than by both clocks of the driver."""
    gaps, others = _judge_gaps(ours), _judge_gaps(theirs)
    if not gaps or not others:
        return
    median = median_us(ours)
    beyond = float(np.median(gaps) - np.median(others))
    noise = _ERRORS * float(np.hypot(standard_error(gaps), standard_error(others)))
    if beyond > max(JUDGE_SLACK_US, GAP_SHARE * median) + noise:
        raise ImpossibleTime(
            TimeFault.MOVED_CLOCKS,
            f"the clocks of the candidate's process are wrong: the judge's clock says {beyond:.0f} us more than the "
            f"{median:.2f} us between the events",
        )


def _judge_gaps(samples: Sequence[TimingSample]) -> list[float]:
    """The judge's gap of every visit, in microseconds; samples of one visit stand together and share its time."""
    known = [sample for sample in samples if sample.judge_us is not None]
    visits = [(wall, list(visit)) for wall, visit in groupby(known, key=lambda sample: sample.judge_us)]
    return [float(wall - np.mean(device_us(visit))) for wall, visit in visits]


def standard_error(values: Sequence[float]) -> float:
    """Of the median; of few values, their whole range."""
    if len(values) < 8:
        return float(np.ptp(values))
    deviation = np.median(np.abs(np.asarray(values) - np.median(values)))
    return float(_MEDIAN_ERROR * deviation / np.sqrt(len(values)))
