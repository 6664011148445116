"""Large sizes on a modelled device: timed from a sample of blocks, judged where everything is executed."""

from __future__ import annotations

import pytest
from budget_support import RELU_SLUG, reduced
from fake_device import FakeDevice, source

from kernelblaster.config import EvaluationConfig
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.results import Verdict
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload


@pytest.fixture
def problem(store: InputStore) -> Problem:
    return reduced(RELU_SLUG, store.directory.parent / "reduced", medium={"batch_size": 5, "dim": 259})


def make(
    store: InputStore, *, kind: DeviceKind = DeviceKind.EMULATED, sample: float = 20, workload: StandardWorkload
) -> Evaluator:
    config = EvaluationConfig(input_sets=3, max_seconds_timing=0.3, emulated_sample=sample)
    return Evaluator(FakeDevice(kind), store, config, workload, precision=Precision.FP32, seed=11)


def test_outputs_of_a_sampled_size_are_not_judged_and_no_reference_is_computed(
    store: InputStore, problem: Problem
) -> None:
    evaluator = make(store, workload=StandardWorkload.MEDIUM)
    evaluation = evaluator.evaluate(problem, source("honest"), baseline=source("slow"))
    assert evaluation.verdict is Verdict.CORRECT
    assert not evaluation.outputs_judged
    assert evaluation.comparison is not None
    assert {figures.workload for figures in evaluation.errors} == {StandardWorkload.SMALL}
    assert len(evaluation.errors) == 5  # three distributions, and extents that are not declared
    with evaluator.inputs.use(evaluator.plan(problem).timed) as drawn:
        assert drawn.reference_output is None
        with pytest.raises(ValueError, match="reference"):
            drawn.expected  # noqa: B018


def test_the_cheap_size_is_judged_in_full(store: InputStore, problem: Problem) -> None:
    evaluation = make(store, workload=StandardWorkload.SMALL).evaluate(problem, source("honest"))
    assert evaluation.outputs_judged
    assert {figures.workload for figures in evaluation.errors} == {StandardWorkload.SMALL}


@pytest.mark.parametrize(("kind", "sample"), [(DeviceKind.CUDA, 20), (DeviceKind.EMULATED, 0)])
def test_without_a_sample_every_size_is_judged(
    store: InputStore, problem: Problem, kind: DeviceKind, sample: float
) -> None:
    evaluation = make(store, kind=kind, sample=sample, workload=StandardWorkload.MEDIUM).evaluate(
        problem, source("honest")
    )
    assert evaluation.outputs_judged
    assert {figures.workload for figures in evaluation.errors} == {StandardWorkload.SMALL, StandardWorkload.MEDIUM}


def test_a_kernel_that_is_wrong_at_the_cheap_size_is_still_refused(store: InputStore, problem: Problem) -> None:
    evaluation = make(store, workload=StandardWorkload.MEDIUM).evaluate(problem, source("scaled"))
    assert evaluation.verdict is Verdict.WRONG_VALUES
    assert evaluation.timing is None
