"""A reference that gives something else every time is refused before any kernel of it is judged."""

from __future__ import annotations

from pathlib import Path

import pytest
from problem_files import REFERENCE, write_problem

import kernelblaster
from kernelblaster import list_problems
from kernelblaster.api.problems import audit_problem
from kernelblaster.config import RunConfig
from kernelblaster.errors import ProblemError
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Problem
from kernelblaster.problems.sound_reference import require_sound_reference
from kernelblaster.runs.preparation import check_problems
from kernelblaster.runs.problem_checks import CheckPlan
from kernelblaster.runs.problem_checks import check_problems as check_starts

RANDOM = {
    "dropout": REFERENCE.replace("* x * x", "* torch.nn.functional.dropout(x, 0.5)"),
    "noise": REFERENCE.replace("* x * x", "* (x + torch.rand_like(x))"),
}
ZEROS = """
#include <cuda_runtime.h>
#include <cstdint>
#include <cuda_fp16.h>
void launch_gpu_implementation(void* output, void* x, int64_t n, float factor) {
    cudaMemset(output, 0, n * sizeof(half));
}
"""


@pytest.fixture(params=RANDOM)
def random_problem(request: pytest.FixtureRequest, tmp_path: Path) -> Problem:
    """A problem whose reference is random, and whose start writes zeros."""
    return load_problem(write_problem(tmp_path / "1_Random", reference=RANDOM[request.param], init=ZEROS))


def test_evaluate_refuses_it(random_problem: Problem) -> None:
    with pytest.raises(ProblemError):
        kernelblaster.evaluate(random_problem, ZEROS, device="emulated")


def test_a_run_refuses_it(random_problem: Problem) -> None:
    with pytest.raises(ProblemError):
        check_problems([random_problem], lambda stage: None)


def test_an_audit_says_why(random_problem: Problem) -> None:
    (fault,) = audit_problem(random_problem)
    assert "random" in fault


def test_its_start_is_never_correct(random_problem: Problem, tmp_path: Path) -> None:
    precision, size = random_problem.precisions[0], random_problem.cheap_workload
    plan = CheckPlan([random_problem], [precision], [size])
    (row,) = check_starts(plan, RunConfig(device="emulated"), tmp_path / "rows.jsonl", lambda stage: None)
    assert not row.passed
    assert "random" in row.reason


def test_what_always_gives_the_same_is_taken(tmp_path: Path) -> None:
    require_sound_reference(load_problem(write_problem(tmp_path / "1_Square")))


@pytest.mark.parametrize("number", [3, 23, 45, 66, 88])
def test_shipped_references_always_give_the_same(number: int) -> None:
    for problem in list_problems("level1,level2", str(number)):
        require_sound_reference(problem)


@pytest.mark.parametrize(("most", "sound"), [(37, True), (38, False)])
def test_indices_that_point_nowhere_are_refused(tmp_path: Path, most: int, sound: bool) -> None:
    returned = f"return ((1 + x.argmax(0, keepdim=True)) * 0 + {most} - 1)"
    reference = REFERENCE.replace('return SCALARS["factor"] * x * x', returned) + 'INDICES = {"output": ("x", 0)}\n'
    problem = load_problem(write_problem(tmp_path / "1_Index", reference=reference))
    if sound:
        require_sound_reference(problem)
    else:
        with pytest.raises(ProblemError) as caught:
            require_sound_reference(problem)
        assert "INDICES" in caught.value.message
        assert caught.value.hint
