"""References that do not come to an end."""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from textwrap import indent

import pytest
from problem_files import REFERENCE, write_problem

from kernelblaster.errors import ExitCode, ProblemError, UsageError
from kernelblaster.evaluation.correctness import reference_output
from kernelblaster.evaluation.correctness.input_draws import draw
from kernelblaster.evaluation.inputs.distributions import Distribution
from kernelblaster.evaluation.inputs.recipes import Recipe
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload
from kernelblaster.problems.reference import load_reference, tensor_specs
from kernelblaster.problems.time_limit import VARIABLE, within_time

LOOP = """
while True:
    try:
        pass
    except Exception:
        pass
"""
STUBBORN = """
n = 0
while True:
    try:
        while True:
            n += 1
    except:
        n -= 1
"""
MODEL, INPUTS, FORWARD = "class Model", "    return [torch", '        return SCALARS["factor"]'
STUCK = """
import sys
from pathlib import Path
import torch  # takes longer than is allowed here
from kernelblaster.problems import time_limit
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.reference import load_reference
time_limit.GRACE_S = 0.2
load_reference(load_problem(Path(sys.argv[1])))
print("went on")
"""
TRACED = """
import os
import sys
from pathlib import Path
import torch  # takes longer than is allowed here
from kernelblaster.errors import ProblemError
from kernelblaster.problems import time_limit
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.reference import load_reference
problem = load_problem(Path(sys.argv[1]))
os.environ[time_limit.VARIABLE] = "0.3"
try:
    load_reference(problem)
except ProblemError:
    sys.settrace(lambda *_: None)
    (lambda: sum(range(9)))()
    sys.settrace(None)
    print("went on")
"""


def problem_of(directory: Path, before: str = MODEL, code: str = "") -> Problem:
    """A problem in whose reference `code` stands before a place."""
    assert REFERENCE.count(before) == 1
    return load_problem(write_problem(directory / "problem", reference=REFERENCE.replace(before, f"{code}\n{before}")))


@pytest.fixture(autouse=True, scope="module")
def _imported(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What torch imports when it is first used takes longer than these tests allow."""
    tensor_specs(problem_of(tmp_path_factory.mktemp("sound")), StandardWorkload.SMALL, Precision.FP16)


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("before", "depth"), [(MODEL, 0), (INPUTS, 4), (FORWARD, 8)], ids=["when read", "in get_inputs", "in forward"]
)
def test_it_is_one_line_with_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, depth: int) -> None:
    problem = problem_of(tmp_path, before, indent(LOOP, " " * depth))
    monkeypatch.setenv(VARIABLE, "0.3")
    with pytest.raises(ProblemError, match=r"reference\.py\b.* 0\.3 s") as caught:
        tensor_specs(problem, StandardWorkload.SMALL, Precision.FP16)
    assert VARIABLE in caught.value.hint


@pytest.mark.timeout(30)
def test_the_judge_does_not_wait_for_ever_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that the `meta` device does not show."""
    problem = problem_of(tmp_path, FORWARD, "        while x.device.type != 'meta': pass")
    specs = tensor_specs(problem, StandardWorkload.SMALL, Precision.FP32)
    drawn = draw(load_reference(problem), StandardWorkload.SMALL, specs, Recipe(Distribution.NORMAL, 0), seed=1)
    monkeypatch.setenv(VARIABLE, "0.3")
    with pytest.raises(ProblemError, match=r"reference\.py\b.* 0\.3 s"):
        reference_output.solve(drawn, specs[:1], Precision.FP32, Distribution.DECLARED)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("code", ["import time; time.sleep(1000)", STUBBORN], ids=["waits", "swallows"])
def test_code_that_cannot_be_stopped_ends_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    monkeypatch.setenv(VARIABLE, "0.2")
    problem = problem_of(tmp_path, code=code)
    done = subprocess.run([sys.executable, "-c", STUCK, problem.directory], capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
    message, hint = done.stderr.splitlines()
    assert "reference.py" in message
    assert "0.2 s" in message
    assert VARIABLE in hint


@pytest.mark.timeout(60)
def test_code_that_is_traced_afterwards_ends(tmp_path: Path) -> None:
    """A debugger's, coverage's or Hypothesis's: the interpreter waits for no exception any more."""
    problem = problem_of(tmp_path, code=LOOP)
    done = subprocess.run([sys.executable, "-c", TRACED, problem.directory], capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr


def busy(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def test_what_ends_in_time_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when it ends in the very moment in which its time is over."""
    problem = problem_of(tmp_path)
    monkeypatch.setenv(VARIABLE, "0.002")
    refused = 0
    for number in range(200):
        try:
            within_time(problem, partial(busy, 5e-5 * number))  # threads of Python take turns after 5 ms
        except ProblemError:
            refused += 1
        sum(range(1000))
    assert 0 < refused < 200


@pytest.mark.parametrize("seconds", ["0", "-1", "soon", "nan", "inf"])
def test_a_limit_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: str) -> None:
    monkeypatch.setenv(VARIABLE, seconds)
    with pytest.raises(UsageError, match=VARIABLE):
        within_time(problem_of(tmp_path), lambda: None)
