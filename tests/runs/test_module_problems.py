"""Problems made of KernelBench files: edits are not lost, and two sources do not share a directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelblaster import RunConfig, optimize
from kernelblaster.errors import UsageError
from kernelblaster.problems.interchange import problem_files
from kernelblaster.problems.problem import Problem
from kernelblaster.runs import module_problems
from kernelblaster.runs.module_problems import problem_of_module

MODULE = """import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 7

rows = 33

def get_inputs():
    return [torch.randn(rows, 20)]

def get_init_inputs():
    return []
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "a" / "7_A.py"
    path.parent.mkdir()
    path.write_text(MODULE)
    return path


def made(source: Path) -> Problem:
    return problem_of_module(source, source.parents[1] / "problems")


def test_what_was_edited_is_refused_and_stays(source: Path) -> None:
    problem = made(source)
    before = problem.reference_path.read_text()
    assert made(source) == problem
    problem.init_path.write_text("void launch_gpu_implementation();")
    assert made(source).has_start
    problem.reference_path.write_text(before.replace("* 7", "* 8"))
    with pytest.raises(UsageError) as refused:
        made(source)
    assert str(problem.directory) in refused.value.hint
    assert "* 8" in problem.reference_path.read_text()
    problem.reference_path.write_text(before)
    assert made(source) == problem


def test_a_search_begins_with_no_problem_that_was_edited(source: Path) -> None:
    config = RunConfig(out=source.parents[1])
    problem = made(source)
    problem.driver_path.write_text("// edited")
    with pytest.raises(UsageError) as refused:
        optimize(source, config=config, device="emulated")
    assert "--problem-dir" in refused.value.hint
    assert problem.driver_path.read_text() == "// edited"


def test_a_source_that_changes_keeps_its_directory(source: Path) -> None:
    first = made(source)
    source.write_text(MODULE.replace("* 7", "* 8"))
    second = made(source)
    assert second.directory == first.directory
    assert "* 8" in second.reference_path.read_text()
    source.write_text(MODULE)
    assert "* 7" in made(source).reference_path.read_text()


def test_two_sources_of_one_name_have_directories_of_their_own(source: Path) -> None:
    other = source.parents[1] / "b" / source.name
    other.parent.mkdir()
    other.write_text(MODULE.replace("* 7", "* 8"))
    mine, theirs = made(source), made(other)
    assert (mine.slug, mine.id) != (theirs.slug, theirs.id)
    assert "* 7" in mine.reference_path.read_text()
    assert "* 8" in theirs.reference_path.read_text()
    other.write_text(MODULE.replace("* 7", "* 9"))
    assert made(other).directory == theirs.directory
    assert made(source) == mine


def test_files_of_which_nothing_is_known_are_taken_over_where_they_are_as_they_would_be(source: Path) -> None:
    record = made(source).directory / module_problems.SOURCE
    record.unlink()
    problem = made(source)
    record.unlink()
    problem.driver_path.write_text("// edited")
    with pytest.raises(UsageError):
        made(source)


def test_a_kill_while_files_are_written_leaves_no_edit(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(source)
    source.write_text(MODULE.replace("* 7", "* 8"))
    write = problem_files.write_atomically

    def killed(path: Path, content: str | bytes) -> None:
        if path.name == "reference.py":
            raise KeyboardInterrupt
        write(path, content)

    with monkeypatch.context() as patched:
        patched.setattr(problem_files, "write_atomically", killed)
        with pytest.raises(KeyboardInterrupt):
            made(source)
    source.write_text(MODULE.replace("* 7", "* 9"))
    assert "* 9" in made(source).reference_path.read_text()


def test_a_damaged_record_is_reported(source: Path) -> None:
    (made(source).directory / module_problems.SOURCE).write_text("{")
    with pytest.raises(UsageError) as damaged:
        made(source)
    assert damaged.value.hint
