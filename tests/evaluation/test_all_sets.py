"""How many input sets a kernel passes, and that counting them changes no verdict."""

from __future__ import annotations

import pytest
from budget_support import RELU_SLUG, reduced
from fake_device import FakeDevice, source

from kernelblaster.config import EvaluationConfig
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.results import Evaluation, Verdict
from kernelblaster.problems.problem import Precision, StandardWorkload


def judged(store: InputStore, name: str, *, all_sets: bool) -> Evaluation:
    problem = reduced(RELU_SLUG, store.directory.parent / "reduced", medium={"batch_size": 5, "dim": 259})
    config = EvaluationConfig(input_sets=4, max_seconds_timing=0.3, all_sets=all_sets)
    device = FakeDevice()
    evaluator = Evaluator(device, store, config, StandardWorkload.MEDIUM, precision=Precision.FP32, seed=11)
    return evaluator.evaluate(problem, source(name))


@pytest.fixture(autouse=True)
def no_spin_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelblaster.evaluation.timing.stopwatch.SPIN_UP_S", 0.0)


def test_a_wrong_kernel_is_called_on_all_sets_of_the_cheap_size_where_that_is_asked_for(store: InputStore) -> None:
    first, counted = (judged(store, "scaled", all_sets=every) for every in (False, True))
    assert first.verdict is counted.verdict is Verdict.WRONG_VALUES
    assert first.reason == counted.reason
    assert (len(first.errors), len(counted.errors)) == (1, 3)
    assert first.passed_share == counted.passed_share == 0.0


def test_a_right_kernel_passes_every_set_that_was_planned(store: InputStore) -> None:
    found = judged(store, "honest", all_sets=True)
    assert found.verdict is Verdict.CORRECT
    assert found.passed_share == 1.0
