"""Extents that no prompt shows differ from the declared ones, and the reference runs on them."""

from __future__ import annotations

from pathlib import Path

import pytest
from problem_files import REFERENCE, write_problem

from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import Dataset
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Precision, Problem, Size
from kernelblaster.problems.reference import tensor_specs
from kernelblaster.problems.unseen import unseen

PROBLEMS = Dataset(data_dir() / "kernelbench-cuda").problems()


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: str(problem.id))
def test_every_shipped_problem_has_some(problem: Problem) -> None:
    other = unseen(problem)
    assert other is not None
    before, after = problem.sizes[Size.SMALL], other.sizes[Size.SMALL]
    changed = {name for name in before if after[name] != before[name]}
    assert changed
    assert all(after[name] % 16 == 1 for name in changed)
    assert all(after[name] <= max(extents[name] for extents in problem.sizes.values()) for name in changed)
    shapes = [{spec.shape for spec in tensor_specs(p, Size.SMALL, Precision.FP16)} for p in (problem, other)]
    assert shapes[0] != shapes[1]


def test_extents_that_cannot_change_alone_stay(tmp_path: Path) -> None:
    reference = REFERENCE.replace('{"n": 37}', '{"n": 48, "heads": 6, "rows": 99}')
    reference = reference.replace('torch.randn(SIZES[size]["n"])', 'torch.randn(SIZES[size]["rows"], SIZES[size]["n"])')
    reference = reference.replace('{"n": 400}', '{"n": 400, "heads": 8, "rows": 4}')
    reference = reference.replace('{"n": 4000}', '{"n": 4000, "heads": 8, "rows": 4}')
    reference = reference.replace("* x * x", "* x.reshape(-1, 6, 8).reshape(-1, 48)")
    other = unseen(load_problem(write_problem(tmp_path / "p", reference=reference)))
    assert other is not None
    assert other.sizes[Size.SMALL] == {"n": 48, "heads": 6, "rows": 65}


@pytest.mark.parametrize(("small", "large", "chosen"), [(523, 4000, 2049), (523, 900, 513), (1025, 4000, 769)])
def test_what_one_block_covers_is_raised_beyond_it(tmp_path: Path, small: int, large: int, chosen: int) -> None:
    reference = REFERENCE.replace('{"n": 37}', f'{{"n": {small}}}').replace('{"n": 4000}', f'{{"n": {large}}}')
    other = unseen(load_problem(write_problem(tmp_path / "p", reference=reference)))
    assert other is not None
    assert other.sizes[Size.SMALL]["n"] == chosen


@pytest.mark.parametrize(("small", "large", "chosen"), [(37, 900, 321), (200, 321, 321), (37, 320, 33)])
def test_what_a_usual_block_covers_is_raised_beyond_it(tmp_path: Path, small: int, large: int, chosen: int) -> None:
    reference = REFERENCE.replace('{"n": 37}', f'{{"n": {small}}}').replace('{"n": 4000}', f'{{"n": {large}}}')
    other = unseen(load_problem(write_problem(tmp_path / "p", reference=reference.replace('"n": 400}', '"n": 60}'))))
    assert other is not None
    assert other.sizes[Size.SMALL]["n"] == chosen


def test_a_width_that_must_divide_is_lowered_further(tmp_path: Path) -> None:
    reference = REFERENCE.replace('{"n": 37}', '{"n": 57}').replace("4000", "90").replace("400", "60")
    reference = reference.replace("* x * x", "* x.reshape(3, -1).reshape(-1)")
    other = unseen(load_problem(write_problem(tmp_path / "p", reference=reference)))
    assert other is not None
    assert other.sizes[Size.SMALL]["n"] == 33


def test_a_problem_without_large_extents_has_none(tmp_path: Path) -> None:
    reference = REFERENCE.replace('{"n": 37}', '{"n": 9}')
    assert unseen(load_problem(write_problem(tmp_path / "p", reference=reference))) is None
