"""At a small size the numbers of a module do what they do at its own: a kernel that leaves one out is wrong there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from test_kernelbench_modules import imported as imported_in
from test_kernelbench_modules import text_of

from kernelblaster.problems.problem import Problem
from kernelblaster.problems.reference import results

WINDOW = (
    "p = torch.arange(x.size(0), device=x.device); "
    "near = ((p[:, None] - p[None]).abs() < window).to(x.dtype); return near @ x"
)
BLOCK = "b = torch.arange(x.size(0), device=x.device) // {}; return x * (1 + b.to(x.dtype))[:, None]"


def imported(directory: Path, text: str) -> Problem:
    directory.mkdir(exist_ok=True)
    return imported_in(directory, text)


def changed(problem: Problem, **numbers: int) -> bool:
    """Whether results of the small size are others with these numbers."""
    own = replace(problem, workloads={"small": problem.workloads["small"]})
    other = replace(problem, workloads={"small": {**problem.workloads["small"], **numbers}})
    return not all(map(torch.equal, results(own), results(other)))


@pytest.mark.parametrize(
    ("forward", "head", "name"),
    [
        (WINDOW, "N = 65536\nwindow = 20000", "window"),
        (BLOCK.format("block"), "N = 400000\nblock = 50000", "block"),
    ],
)
def test_a_number_that_a_size_gives_is_small_enough(tmp_path: Path, forward: str, head: str, name: str) -> None:
    problem = imported(tmp_path, text_of(forward, head=head))
    small, full = problem.workloads["small"], problem.workloads["full"]
    assert small["N"] < full[name], "the number would have no effect"
    assert small[name] < small["N"]
    assert changed(problem, **{name: full[name]})


@pytest.mark.parametrize("head", ["N = 65536", "N = 65536\nM = 2"])
def test_an_extent_is_larger_than_a_literal(tmp_path: Path, head: str) -> None:
    literal = 800
    given = "torch.randn(N, 1024)"
    problem = imported(tmp_path, text_of(BLOCK.format(literal), head=head, given=given))
    without = imported(tmp_path / "without", text_of(head=head, given=given))
    assert without.workloads["small"]["N"] < literal < problem.workloads["small"]["N"] < 2 * literal


def test_what_has_an_effect_anyway_stays(tmp_path: Path) -> None:
    plain = imported(tmp_path / "plain", text_of(head="N = 400000"))
    scaled = imported(tmp_path / "scaled", text_of("return x * 777", head="N = 400000"))
    assert plain.workloads == scaled.workloads


def test_a_literal_that_no_run_reads_changes_no_size(tmp_path: Path) -> None:
    plain = imported(tmp_path / "plain", text_of(head="N = 400000"))
    idle = imported(tmp_path / "idle", text_of(head="N = 400000\ndef unused(rows=300000):\n    return rows"))
    assert plain.workloads == idle.workloads
