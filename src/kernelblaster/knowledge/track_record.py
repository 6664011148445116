"""What each technique brought: attempts, correct ones, mean gain with its interval, the best, and credit, for people.

Selection draws from `posterior`; this is the same evidence without priors and without weights, one line per state,
technique, architecture and kind of device. Operator families, precisions and runs are added up. Gains are against the
parent, which is what people ask for; credit, against the siblings, is what selection learns from (`knowledge.credit`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.knowledge.schema import KnowledgeDocument, Sums
from kernelblaster.knowledge.statistics import total

# Quantiles 0.975 of Student's t for 1, 2, ... degrees of freedom; beyond them two terms of its expansion around the
# normal quantile (Abramowitz and Stegun 26.7.5) are exact to three digits.
_STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131),
    *(2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
_NORMAL = 1.95996
_FEWEST = 3
"""Comparisons that an interval is given for."""


@dataclass(frozen=True, order=True)
class RecordKey:
    """Whose record it is. What a problem's own driver judged stands apart, and so does what was emulated."""

    state: str
    technique: str
    arch: str
    device_kind: DeviceKind
    weakly_verified: bool = False


@dataclass(frozen=True)
class TrackRecord:
    """What a technique brought in one state on one architecture.

    Speed-ups are ratios against the parent kernel. Comparisons that could not tell the two apart count as 1.

    Attributes:
        attempts: candidates that were judged.
        correct: of these.
        compared: of the correct ones, those with a comparison; 0 where only credit was kept, as files once did.
        mean: geometric mean over comparisons; None without one.
        low, high: its 95 % interval, by Student's t over log speed-ups, as if comparisons were independent; None for
            fewer than three, which tell next to nothing of their spread, or where none could tell a difference.
        best: largest speed-up; None without a comparison.
        credit: speed-up beyond that of other candidates of the same parent, geometric mean; None without siblings.
    """

    attempts: int
    correct: int
    compared: int
    mean: float | None
    low: float | None
    high: float | None
    best: float | None
    credit: float | None


def track_records(document: KnowledgeDocument) -> dict[RecordKey, TrackRecord]:
    """Records of everything that was attempted: by state as the document lists them, then by mean, best first."""
    sums: dict[RecordKey, list[Sums]] = defaultdict(list)
    for row in document.statistics:
        cell = row.cell
        key = RecordKey(cell.state, cell.technique, cell.arch, cell.device_kind, cell.weakly_verified)
        sums[key].append(row.sums)
    records = {key: record_of(total(parts)) for key, parts in sorted(sums.items())}
    order = {state: place for place, state in enumerate(document.states)}
    return dict(
        sorted(records.items(), key=lambda item: (order.get(item[0].state, len(order)), -(item[1].mean or 0.0)))
    )


def record_of(sums: Sums) -> TrackRecord:
    """The record that sums stand for."""
    mean, low, high = _mean_and_interval(sums)
    bests = [*([] if sums.best is None else [sums.best]), *([0.0] if sums.inconclusive else [])]
    return TrackRecord(
        attempts=sums.attempts,
        correct=sums.attempts - sums.failed,
        compared=sums.compared,
        mean=mean,
        low=low,
        high=high,
        best=math.exp(max(bests)) if bests else None,
        credit=math.exp(sums.sum_log / sums.n) if sums.n else None,
    )


def _mean_and_interval(sums: Sums) -> tuple[float | None, float | None, float | None]:
    count = sums.compared
    if not count:
        return None, None, None
    mean = sums.sum_gain / count
    # One summand that is left over by rounding would look like certainty.
    spread = max(0.0, sums.sum_sq_gain - count * mean**2)
    if count < _FEWEST or spread <= 1e-12 * max(1.0, sums.sum_sq_gain):
        return math.exp(mean), None, None
    half = _student(count - 1) * math.sqrt(spread / (count - 1) / count)
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def _student(freedom: int) -> float:
    if freedom <= len(_STUDENT):
        return _STUDENT[freedom - 1]
    return _NORMAL + (_NORMAL**3 + _NORMAL) / (4 * freedom)
