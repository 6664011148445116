"""The way from the start to the final kernel, and what each step on it changed."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from report_samples import record, two_rollouts

from kernelblaster.report.winning_path import winning_path, winning_steps


def test_each_step_on_the_way_says_what_it_changed(tmp_path: Path) -> None:
    problem = record(tmp_path, two_rollouts(), final="c")
    problem.files.candidate_path("start").parent.mkdir()
    way = winning_steps(problem.final, problem.steps)
    assert len(way) > 1
    for number, name in enumerate(("start", *(step.candidate for step in way))):
        problem.files.candidate_path(str(name)).write_text("int same;\n" * 20 + f"int step{number};\n")
    path = winning_path(problem)
    assert [len(path), path[-1].diff.removed, path[-1].diff.added] == [len(way), 1, 1]
    assert way[0].parent == problem.start
    assert all(after.parent == before.candidate for before, after in pairwise(way))


def test_a_kernel_that_is_not_stored_is_left_out(tmp_path: Path) -> None:
    problem = record(tmp_path, two_rollouts(), final="c")
    assert winning_path(problem) == ()
    assert winning_steps("unknown", problem.steps) == []
