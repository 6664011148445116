"""What takes more memory than the host has is refused before any of it is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelblaster import audit_problem, evaluate, optimize
from kernelblaster.agent.outcome import OutcomeStatus, ProblemOutcome
from kernelblaster.config import RunConfig
from kernelblaster.errors import MachineError
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.peak_memory import peak_bytes
from kernelblaster.problems.problem import Problem
from kernelblaster.records.layout import OUTCOME, RunLayout
from kernelblaster.runs import references
from kernelblaster.runs.preparation import left_to_search

REFERENCE = """
import torch

SIZES = {{"{size}": {{"n": {n}}}}}


class Model(torch.nn.Module):
    def forward(self, x):
        return {forward}


def get_inputs(size="full"):
    return [torch.randn(SIZES[size]["n"])]


def get_init_inputs(size="full"):
    return []
"""
DRIVER = """
#include <kernelblaster/driver.hpp>
void launch_gpu_implementation(void* output, void* x, int64_t n);
static void call(kb::Driver& d) { launch_gpu_implementation(d.output("output"), d.input("x"), d.size("n")); }
KB_DRIVER(call)
"""
INIT = "void launch_gpu_implementation(void* output, void* x, int64_t n) {}\n"
PAIRS = "(x[:, None] - x[None]).abs().sum(1)"


def problem_of(directory: Path, n: int, forward: str = "x * 2 + 1", size: str = "full") -> Problem:
    directory.mkdir()
    (directory / "reference.py").write_text(REFERENCE.format(n=n, forward=forward, size=size))
    (directory / "driver.cpp").write_text(DRIVER)
    (directory / "init.cu").write_text(INIT)
    return load_problem(directory)


@pytest.mark.parametrize(
    ("forward", "times"),
    [("x * 2", 2), ("x", 1), ("x[::2] + x[1::2]", 1.5), ("(x + 1) * 2 - 3", 3), ("x.sum()", 1)],
)
def test_what_is_held_at_once_is_counted_in_float64(tmp_path: Path, forward: str, times: float) -> None:
    n = 1 << 40
    assert peak_bytes(problem_of(tmp_path / "p", n, forward), "full") == pytest.approx(8 * n * times, rel=1e-6)


def test_intermediate_values_count(tmp_path: Path) -> None:
    n = 1 << 20
    assert peak_bytes(problem_of(tmp_path / "p", n, PAIRS), "full") >= 8 * n * n


@pytest.mark.parametrize(("n", "forward", "size"), [(1 << 40, "x * 2 + 1", "full"), (1 << 20, PAIRS, "small")])
def test_it_is_refused_by_whoever_runs_the_reference_here(
    tmp_path: Path, n: int, forward: str, size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    problem = problem_of(tmp_path / "p", n, forward, size)
    config = RunConfig(device="emulated", out=tmp_path / "out")
    works = {
        "audit": lambda: audit_problem(problem),
        "evaluate": lambda: evaluate(problem, problem.init_path, config=config),
        "run": lambda: optimize(problem, config=config, model="batch_exchange"),
    }
    for name, work in works.items():
        with pytest.raises(MachineError) as caught:
            work()
        assert caught.value.hint, name


def test_what_fits_is_not_refused_nor_what_fails_for_another_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = problem_of(tmp_path / "small", 1000)
    references.require_host_room(small, "full", "auditing")
    monkeypatch.setattr(references, "free_host_memory", lambda: 1000)
    with pytest.raises(MachineError):
        references.require_host_room(small, "full", "auditing")
    references.require_host_room(problem_of(tmp_path / "bad", 1 << 40, "x @ x @ x"), "full", "auditing")


def test_an_audit_takes_more_than_one_run_of_the_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of(tmp_path / "p", 1 << 20)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr(references, "free_host_memory", lambda: 8 * (1 << 20) * 10)
    references.require_host_room(problem, "full", "judging")
    with pytest.raises(MachineError):
        audit_problem(problem)


def test_a_run_that_goes_on_looks_at_what_is_left_alone(tmp_path: Path) -> None:
    problems = tuple(problem_of(tmp_path / name, 1000) for name in ("first", "second"))
    layout = RunLayout(experiment=tmp_path, run=tmp_path / "model")
    ended = layout.problem(problems[0])
    ended.mkdir(parents=True)
    outcome = ProblemOutcome(problem=str(problems[0].id), status=OutcomeStatus.IMPROVED)
    (ended / OUTCOME).write_text(outcome.model_dump_json())
    assert left_to_search(layout, problems, resume=True, retry=False) == problems[1:]
    for resume, retry in ((False, False), (True, True)):
        assert left_to_search(layout, problems, resume=resume, retry=retry) == problems
