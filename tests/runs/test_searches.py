"""A search is continued only for the problem that it was begun for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kernelblaster.errors import UsageError
from kernelblaster.paths import data_dir
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Problem
from kernelblaster.records.searches import SEARCH, check_search, find_search, open_search


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    copy = tmp_path / "level1" / "023_Softmax"
    shutil.copytree(data_dir() / "kernelbench-cuda" / "level1" / "023_Softmax", copy)
    return load_problem(copy)


def test_a_search_keeps_its_name_until_it_is_begun_anew(problem: Problem, tmp_path: Path) -> None:
    directory = tmp_path / "out"
    assert find_search(directory) is None
    begun = open_search(directory, problem, "run", archive=True)
    assert open_search(directory, problem, "run", archive=True) == find_search(directory) == begun
    # A person who deletes the directory does not get the transitions of the search that lay there.
    shutil.rmtree(directory)
    assert open_search(directory, problem, "run", archive=True).name != begun.name


@pytest.mark.parametrize("name", ["reference.py", "init.cu", "driver.cpp"])
def test_a_changed_problem_is_not_taken_for_the_one_that_was_searched(
    problem: Problem, tmp_path: Path, name: str
) -> None:
    directory = tmp_path / "out"
    check_search(directory, problem)
    open_search(directory, problem, "run", archive=True)
    check_search(directory, problem)
    with (problem.directory / name).open("a") as file:
        file.write("\n\n")
    with pytest.raises(UsageError, match=name) as refused:
        check_search(directory, problem)
    assert "--no-resume" in refused.value.hint


def test_a_damaged_record_is_named(problem: Problem, tmp_path: Path) -> None:
    open_search(tmp_path, problem, "run", archive=True)
    (tmp_path / SEARCH).write_text("{")
    with pytest.raises(UsageError, match="damaged"):
        find_search(tmp_path)
