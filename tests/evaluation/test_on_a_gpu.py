"""One problem on a GPU, through all stages: the driver's program starts while the candidate is compiled."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from kernelblaster.config import EvaluationConfig, RunConfig
from kernelblaster.devices.cuda.probe import detect_gpu
from kernelblaster.devices.profiles import ProfileSource
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.problems.problem import Problem
from kernelblaster.runs.evaluations import find_problem, open_evaluator

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(detect_gpu() is None, reason="no NVIDIA GPU"),
]
CONFIG = RunConfig(device="cuda", evaluation=EvaluationConfig(max_seconds_timing=1.0))


@pytest.fixture(scope="module")
def judge() -> Iterator[Evaluator]:
    with open_evaluator(CONFIG, lambda _: None) as evaluator:
        yield evaluator


@pytest.fixture(scope="module")
def problem() -> Problem:
    return find_problem("level1/23", CONFIG)


@pytest.fixture(scope="module")
def start(problem: Problem) -> str:
    return problem.init_path.read_text()


def test_a_start_is_correct_timed_against_itself_and_profiled(judge: Evaluator, problem: Problem, start: str) -> None:
    found = judge.evaluate(problem, f"{start}// another text\n", baseline=start)
    assert (found.verdict, found.reason) == (Verdict.CORRECT, "")
    assert found.comparison.decision is Decision.INCONCLUSIVE
    assert found.profile.source in (ProfileSource.NCU, ProfileSource.EVENTS)
    if found.profile.source is ProfileSource.NCU:
        assert all("softmax" in kernel.name for kernel in found.profile.kernels)


def test_a_candidate_that_cannot_be_loaded_says_why(judge: Evaluator, problem: Problem, start: str) -> None:
    throws = f"{start}\nstatic const int thrown = [] {{ throw 3; return 1; }}();\n"
    found = judge.evaluate(problem, throws)
    assert found.verdict is Verdict.RUNTIME_ERROR
    assert found.timing is None


@pytest.mark.parametrize(
    ("broken", "verdict"),
    [
        (lambda text: f"{text}\nint = 3;", Verdict.COMPILE_ERROR),
        (lambda text: re.sub(r"<<<batch_size,", "<<<batch_size - 1,", text), Verdict.WRONG_VALUES),
    ],
)
def test_a_broken_start_is_refused(
    judge: Evaluator, problem: Problem, start: str, broken: object, verdict: Verdict
) -> None:
    assert broken(start) != start
    found = judge.evaluate(problem, broken(start), baseline=start)
    assert found.verdict is verdict, found.reason
    assert found.profile is None
