from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knowledge_samples import document, gains, recorded, row, transition

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.knowledge.schema import Sums
from kernelblaster.knowledge.statistics import add, cell_of, merge_rows, sums_of, total

log_gains = st.lists(st.floats(-3, 3), max_size=5)
any_sums = st.builds(lambda logs, failed: gains(*logs, failed=failed), log_gains, st.integers(0, 4))
rows = st.builds(
    lambda name, sums, run, kind, arch: row(name, sums, run=run, device_kind=kind, arch=arch),
    st.sampled_from(["widen", "fuse"]),
    any_sums,
    st.sampled_from(["run-a", "run-b"]),
    st.sampled_from(list(DeviceKind)),
    st.sampled_from(["sm_80", "sm_90"]),
)


def merged(items):
    """Rows as a file holds them: one per key."""
    return merge_rows(items, ())


tables = st.lists(rows, max_size=6).map(merged)


ROUNDED = {"sum_log", "sum_sq_log", "sum_gain", "sum_sq_gain"}


def approximately(left: Sums, right: Sums) -> bool:
    exact = left.model_dump(exclude=ROUNDED) == right.model_dump(exclude=ROUNDED)
    return exact and all(math.isclose(getattr(left, name), getattr(right, name), abs_tol=1e-9) for name in ROUNDED)


@given(any_sums, any_sums)
def test_addition_commutes(left, right):
    assert add(left, right) == add(right, left)


@given(any_sums, any_sums, any_sums)
def test_addition_associates(first, second, third):
    assert approximately(add(add(first, second), third), add(first, add(second, third)))


@given(any_sums)
def test_nothing_is_neutral(sums):
    assert add(sums, Sums()) == sums


@given(log_gains, log_gains)
def test_adding_sums_is_summing_all_gains(left, right):
    assert approximately(add(gains(*left), gains(*right)), gains(*left, *right))


@given(tables, tables)
def test_merging_commutes(left, right):
    assert merge_rows(left, right) == merge_rows(right, left)


@given(tables, tables, tables)
def test_merging_associates(first, second, third):
    assert merge_rows(merge_rows(first, second), third) == merge_rows(first, merge_rows(second, third))


@given(tables, tables)
def test_merging_again_adds_nothing(left, right):
    once = merge_rows(left, right)
    assert merge_rows(once, right) == once


@given(tables, tables)
def test_kinds_of_device_never_mix(left, right):
    for kind in DeviceKind:
        apart = merge_rows(
            [it for it in left if it.cell.device_kind is kind], [it for it in right if it.cell.device_kind is kind]
        )
        assert [it for it in merge_rows(left, right) if it.cell.device_kind is kind] == list(apart)


def test_merging_different_runs_adds_their_evidence():
    both = merge_rows([row("widen", gains(0.1), run="run-a")], [row("widen", gains(0.3), run="run-b")])
    assert total(it.sums for it in both).n == 2


def test_a_later_copy_of_a_run_replaces_the_earlier():
    both = merge_rows([row("widen", gains(0.1, 0.2))], [row("widen", gains(0.1))])
    assert [it.sums.n for it in both] == [2]


def won(speedup: float) -> Sums:
    gain = math.log(speedup)
    return Sums(attempts=1, best=gain, compared=1, sum_gain=gain, sum_sq_gain=gain**2)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (transition(speedup=2.0), won(2.0)),
        (transition(speedup=0.5), won(0.5)),
        (transition(verdict=Verdict.TIMEOUT), Sums(attempts=1, failures={Verdict.TIMEOUT: 1})),
        (transition(decision=Decision.INCONCLUSIVE, speedup=1.004), Sums(attempts=1, inconclusive=1, compared=1)),
        (transition(speedup=None), Sums(attempts=1)),
        (transition(speedup=None, duplicate=True), Sums(attempts=1, inconclusive=1, compared=1)),
        (
            transition(speedup=None, duplicate=True, verdict=Verdict.TIMEOUT),
            Sums(attempts=1, failures={Verdict.TIMEOUT: 1}),
        ),
    ],
)
def test_what_one_transition_adds(made, expected):
    assert sums_of(made) == expected


def test_transitions_of_one_cell_and_run_share_a_row():
    known = recorded(
        document(),
        transition("a"),
        transition("b", verdict=Verdict.COMPILE_ERROR),
        transition("c", device_kind=DeviceKind.EMULATED),
        transition("d", weakly_verified=True),
        transition("e", run="run-b"),
    )
    assert sorted(it.sums.attempts for it in known.statistics) == [1, 1, 1, 2]


def test_an_unknown_family_is_refused():
    with pytest.raises(ValueError, match="interpretive_dance"):
        cell_of(transition(op_family="interpretive_dance"))
