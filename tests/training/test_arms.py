"""Arms of a comparison: means over problems with every failure in them, and differences paired by problem."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.training.arms import FEWEST_PROBLEMS, differences_of, estimate, figures_of
from kernelblaster.training.judging import MACHINE
from kernelblaster.training.rollouts import Rollout


def samples(problem: str, outcomes: str, *, prompt: str = "p") -> list[Rollout]:
    """One completion per letter: c correct, f correct and 4 times as fast, w wrong, h a hack, m not judged."""
    known: dict[str, dict[str, object]] = {
        "c": {"verdict": "correct", "reward": 0.4}, "w": {"verdict": "wrong_values", "reward": 0.1},
        "f": {"verdict": "correct", "decision": "faster", "speedup": 4.0, "reward": 1.3},
        "h": {"verdict": "reward_hack", "reward": 0.0, "hack": True}, "m": {"verdict": MACHINE, "reward": None},
    }  # fmt: skip
    common = {"step": 0, "group": 0, "prompt": prompt, "completion": "", "tokens": 1, "truncated": False}
    return [
        Rollout.model_validate({**common, **known[letter], "index": index, "problem": problem})
        for index, letter in enumerate(outcomes)
    ]


def test_a_problem_counts_once_however_often_it_was_sampled() -> None:
    found = figures_of([*samples("a", "cfwh"), *samples("b", "wwwwwwwwm"), *samples("c", "ff")]).estimates
    assert found["correct"].value == pytest.approx((0.5 + 0.0 + 1.0) / 3)
    assert found["hack"].value == pytest.approx(0.25 / 3)
    assert found["fast_1"].value == found["fast_2"].value == pytest.approx((0.25 + 1.0) / 3)
    assert found["log_speedup"].value == pytest.approx(math.log(4) * 1.25 / 3)
    assert found["pass@2"].value == pytest.approx((1 - 1 / 6 + 0 + 1) / 3)
    assert found["log_speedup@2"].value == pytest.approx(math.log(4) * (3 / 6 + 0 + 1) / 3)
    assert "pass@4" not in found  # one problem has two samples alone


def test_differences_are_of_the_problems_that_both_arms_have() -> None:
    better = [one for name in "abc" for one in samples(name, "ffcc")]
    worse = [one for name in "bcd" for one in samples(name, "ccww")]
    found = differences_of(better, worse)
    assert found["correct"].value == pytest.approx(0.5)
    assert not found["correct"].decided  # two problems give no interval
    more = differences_of([*better, *samples("d", "cccc")], worse)
    assert more["correct"].decided
    assert not differences_of(better, better)["correct"].decided


@given(st.lists(st.floats(-10, 10), min_size=FEWEST_PROBLEMS, max_size=12))
def test_an_interval_lies_between_the_least_and_the_greatest_problem(values: list[float]) -> None:
    found = estimate(values)
    assert found.low is not None
    assert found.high is not None
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
