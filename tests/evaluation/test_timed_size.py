"""At which size a problem is timed: the one that is asked for, or else the usual one and what stands for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from budget_support import RELU_SLUG, reduced
from fake_device import FakeDevice, source

from kernelblaster.config import EvaluationConfig
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.timed_size import size_instead, usual_size
from kernelblaster.problems.problem import Precision, Problem


@pytest.fixture
def problem(store: InputStore) -> Problem:
    return reduced(RELU_SLUG, store.directory.parent / "reduced", medium={"batch_size": 5, "dim": 259})


@pytest.mark.parametrize(
    ("sizes", "emulated", "measured"),
    [
        (["small", "medium", "full"], "small", "medium"),
        (["small", "full"], "small", "full"),
        (["medium", "full"], "medium", "medium"),
        (["full"], "full", "full"),
        (["w1", "w2"], "w1", "w2"),
        ([], "small", "medium"),
    ],
)
def test_another_size_stands_for_one_that_is_missing(
    problem: Problem, sizes: list[str], emulated: str, measured: str
) -> None:
    sized = replace(problem, workloads={name: {"n": 8} for name in sizes})
    for kind, expected in ((DeviceKind.EMULATED, emulated), (DeviceKind.CUDA, measured)):
        assert size_instead(sized, usual_size(kind), kind) == expected


@pytest.mark.parametrize("kind", DeviceKind)
def test_a_size_that_somebody_asked_for_has_to_be_there(store: InputStore, problem: Problem, kind: DeviceKind) -> None:
    config = EvaluationConfig(input_sets=1, max_seconds_timing=0.1)
    assert "w1" not in problem.workloads
    asked, default = (
        Evaluator(FakeDevice(kind), store, config, "w1", precision=Precision.FP32, seed=11, by_default=by_default)
        for by_default in (False, True)
    )
    with pytest.raises(UsageError):
        asked.evaluate(problem, source("honest"), profile=False)
    evaluation = default.evaluate(problem, source("honest"), profile=False)
    assert evaluation.correct
    assert evaluation.workload in problem.workloads
