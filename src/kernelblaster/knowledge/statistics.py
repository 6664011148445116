"""Additive statistics over transitions.

`Sums` add up; a row holds the sums of one cell learned by one run. Two files merge by union of their rows, and a cell's
evidence is the sum of its rows over runs, so that files which share history never count it twice. The device kind is
part of the cell: what was measured and what was emulated are never added.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.knowledge.schema import Cell, StatisticsRow, Sums
from kernelblaster.problems.families import OpFamily
from kernelblaster.replay.transition import Transition


def add(left: Sums, right: Sums) -> Sums:
    """Sum of two; commutative, and associative up to rounding. `Sums()` is neutral."""
    verdicts = sorted(left.failures.keys() | right.failures.keys())
    bests = [best for best in (left.best, right.best) if best is not None]
    return Sums(
        attempts=left.attempts + right.attempts,
        failures={verdict: left.failures.get(verdict, 0) + right.failures.get(verdict, 0) for verdict in verdicts},
        n=left.n + right.n,
        inconclusive=left.inconclusive + right.inconclusive,
        sum_log=left.sum_log + right.sum_log,
        sum_sq_log=left.sum_sq_log + right.sum_sq_log,
        best=max(bests, default=None),
        compared=left.compared + right.compared,
        sum_gain=left.sum_gain + right.sum_gain,
        sum_sq_gain=left.sum_sq_gain + right.sum_sq_gain,
    )


def total(sums: Iterable[Sums]) -> Sums:
    """Sum of many."""
    result = Sums()
    for part in sums:
        result = add(result, part)
    return result


def sums_of(transition: Transition) -> Sums:
    """What one transition adds by itself: one attempt, or a failure. Credit comes with its siblings (`with_credit`).

    A correct kernel that had been there before gained nothing, and counts like one that could not be told from its
    parent: else a technique that changes nothing would look reliable.
    """
    if transition.verdict is not Verdict.CORRECT:
        return Sums(attempts=1, failures={transition.verdict: 1})
    if transition.decision is Decision.INCONCLUSIVE or transition.duplicate:
        return Sums(attempts=1, inconclusive=1, compared=1)
    if transition.speedup is None:
        return Sums(attempts=1)
    gain = math.log(transition.speedup)
    return Sums(attempts=1, best=gain, compared=1, sum_gain=gain, sum_sq_gain=gain**2)


def with_credit(sums: Sums, before: float | None, after: float | None) -> Sums:
    """Sums in which one sibling's credit is `after` instead of `before`; None is no credit."""
    old, new = before or 0.0, after or 0.0
    return sums.model_copy(
        update={
            "n": sums.n + (after is not None) - (before is not None),
            "sum_log": sums.sum_log + new - old,
            "sum_sq_log": max(0.0, sums.sum_sq_log + new**2 - old**2),
        }
    )


def cell_of(transition: Transition) -> Cell:
    """The row key of a transition. Raises ValueError for an unknown operator family."""
    return Cell(
        state=transition.state,
        technique=transition.credited,
        arch=transition.arch,
        device_kind=transition.device_kind,
        op_family=OpFamily(transition.op_family),
        precision=transition.precision,
        weakly_verified=transition.weakly_verified,
    )


def merge_rows(left: Iterable[StatisticsRow], right: Iterable[StatisticsRow]) -> tuple[StatisticsRow, ...]:
    """Union by (run, cell), in a canonical order; commutative, associative and idempotent.

    Where both sides have a row, one is an earlier copy of the other, since only its own run writes it: the one with
    more attempts is kept.
    """
    merged: dict[tuple[str, Cell], StatisticsRow] = {}
    for row in (*left, *right):
        key = (row.run, row.cell)
        merged[key] = max(merged.get(key, row), row, key=_age)
    return tuple(sorted(merged.values(), key=lambda row: (row.run, row.cell.model_dump_json())))


def _age(row: StatisticsRow) -> tuple[int, str]:
    return row.sums.attempts, row.sums.model_dump_json()
