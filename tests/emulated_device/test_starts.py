"""Starts of shipped problems are correct: two of the day and the skeleton in one precision, with --all in each."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import pytest
from emulated_bench import needs_tools
from rotation import rotating

from kernelblaster import Precision, Problem, RunConfig, list_problems, load_problem, open_evaluator, read_start
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.paths import problem_skeleton

pytestmark = [pytest.mark.nvcc, needs_tools]
TODAY = list(Precision)[date.today().toordinal() % len(Precision)]
precisions = [pytest.param(one, marks=[] if one is TODAY else [pytest.mark.slow]) for one in Precision]


@pytest.fixture(scope="module", params=precisions, ids=str)
def judge(request: pytest.FixtureRequest) -> Iterator[Evaluator]:
    with open_evaluator(RunConfig(device="emulated", precision=request.param)) as evaluator:
        yield evaluator


@pytest.mark.parametrize("problem", [*rotating(list_problems(), 2), load_problem(problem_skeleton())])
def test_the_start_is_correct(problem: Problem, judge: Evaluator) -> None:
    found = judge.evaluate(problem, read_start(problem), profile=False)
    assert found.correct, found.reason
