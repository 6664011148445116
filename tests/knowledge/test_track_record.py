"""What people are shown of techniques: means, intervals and bests that agree with each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from knowledge_samples import document, recorded, row, transition

from kernelblaster.evaluation.results import Verdict
from kernelblaster.knowledge.diff import diff
from kernelblaster.knowledge.schema import Sums
from kernelblaster.knowledge.statistics import total
from kernelblaster.knowledge.track_record import record_of, track_records

logs = st.floats(-3, 3)
FAILED = Sums(attempts=1, failures={Verdict.WRONG_VALUES: 1})
EVEN = Sums(attempts=1, compared=1, inconclusive=1)


def gained(log: float) -> Sums:
    return Sums(attempts=1, compared=1, sum_gain=log, sum_sq_gain=log * log, best=log)


@given(decided=st.lists(logs, max_size=8), even=st.integers(0, 3), failed=st.integers(0, 3))
def test_mean_interval_and_best_agree(decided: list[float], even: int, failed: int) -> None:
    record = record_of(total([*map(gained, decided), *[EVEN] * even, *[FAILED] * failed]))
    compared = [*decided, *[0.0] * even]
    assert record.attempts - record.correct == failed
    assert record.compared == len(compared)
    if not compared:
        assert record.mean is record.best is record.low is None
        return
    assert record.mean == pytest.approx(math.exp(sum(compared) / len(compared)))
    assert record.best == pytest.approx(math.exp(max(compared)))
    assert record.mean <= record.best * (1 + 1e-9)
    if record.low is not None:
        assert record.low <= record.mean <= record.high


@pytest.mark.parametrize("comparisons", [3, 6, 40])
def test_the_interval_covers_the_mean_as_often_as_it_says(comparisons: int) -> None:
    rng = np.random.default_rng(7)
    found = [record_of(total(gained(float(log)) for log in rng.normal(0.3, 0.2, comparisons))) for _ in range(1500)]
    covered = np.mean([record.low <= math.exp(0.3) <= record.high for record in found])
    assert 0.93 < covered < 0.97


def test_records_are_apart_by_architecture_and_kind_and_added_over_runs() -> None:
    rows = [
        row("widen", gained(0.2), run="a"),
        row("widen", gained(0.4), run="b"),
        row("widen", gained(2.0), arch="sm_80"),
        row("widen", gained(3.0), device_kind="emulated"),
    ]
    records = track_records(document(statistics=[one.model_dump() for one in rows]))
    assert sorted((key.arch, str(key.device_kind), record.attempts) for key, record in records.items()) == [
        ("sm_80", "cuda", 1),
        ("sm_90", "cuda", 2),
        ("sm_90", "emulated", 1),
    ]


def test_a_mean_that_moves_is_a_difference() -> None:
    before, after = (document(statistics=[row("widen", gained(log)).model_dump()]) for log in (0.1, 0.2))
    (changed,) = diff(before, after).evidence
    assert (changed.before, changed.after) == (1, 1)
    assert changed.before_mean < changed.after_mean
    assert diff(before, before).empty


def test_gains_are_told_against_the_parent_and_credit_against_siblings() -> None:
    """The better of two siblings that both gain: each gained over the parent, one of them less than the other."""
    made = [transition("a", speedup=1.25), transition("b", speedup=2.0, technique="unroll")]
    records = {key.technique: record for key, record in track_records(recorded(document(), *made)).items()}
    slow, fast = records["widen"], records["unroll"]
    assert (slow.mean, slow.best) == (pytest.approx(1.25), pytest.approx(1.25))
    assert (fast.mean, fast.best) == (pytest.approx(2.0), pytest.approx(2.0))
    assert slow.credit == pytest.approx(1.25 / 2.0)
    assert fast.credit == pytest.approx(2.0 / 1.25)


def test_a_file_that_kept_credit_alone_has_no_mean() -> None:
    record = record_of(Sums(attempts=2, n=2, sum_log=0.6, sum_sq_log=0.2, best=0.4))
    assert (record.compared, record.mean, record.low) == (0, None, None)
    assert record.credit == pytest.approx(math.exp(0.3))
