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


def shapes(problem: Problem) -> list[tuple[int, ...]]:
    return [spec.shape for spec in tensor_specs(problem, Size.SMALL, Precision.FP16)]


def changed(problem: Problem, other: Problem) -> dict[str, int]:
    before = problem.sizes[Size.SMALL]
    return {name: extent for name, extent in other.sizes[Size.SMALL].items() if extent != before[name]}


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: str(problem.id))
def test_every_shipped_problem_has_extents_beside_tiles_and_least_ones(problem: Problem) -> None:
    beside, least = unseen(problem)
    assert len({str(shapes(variant)) for variant in (problem, beside, least)}) == 3
    assert changed(problem, beside)
    for name, extent in changed(problem, beside).items():
        assert extent % 16 == 1
        assert extent <= max(extents[name] for extents in problem.sizes.values())
    assert changed(problem, least)
    extents = list(changed(problem, least).values())
    assert set(extents) <= {3, 5, 7, 9}
    assert len(set(extents)) == min(len(extents), 4)
    assert max(max(shape, default=1) for shape in shapes(least)) <= 27, "three projections of nine elements"


def test_extents_that_cannot_be_least_alone_stay_or_are_the_next_ones(tmp_path: Path) -> None:
    text = REFERENCE.replace('torch.randn(SIZES[size]["n"])', 'torch.randn(SIZES[size]["rows"], SIZES[size]["n"])')
    text = text.replace('{"n": 37}', '{"n": 48, "heads": 6, "rows": 99}')
    text = text.replace('{"n": 400}', '{"n": 400, "heads": 8, "rows": 4}')
    text = text.replace('{"n": 4000}', '{"n": 4000, "heads": 8, "rows": 4}')
    for heads, n in ((6, 48), (7, 7), (3, 3)):
        reference = text.replace("* x * x", f"* x.reshape(x.shape[0], {heads}, -1).reshape(x.shape)")
        reference = reference.replace('"n": 48', f'"n": {8 * heads}')
        least = unseen(load_problem(write_problem(tmp_path / f"p{heads}", reference=reference)))[-1]
        assert least.sizes[Size.SMALL] == {"n": n, "heads": 6, "rows": 5 if n == 3 else 3}


def test_extents_that_cannot_change_alone_stay(tmp_path: Path) -> None:
    reference = REFERENCE.replace('{"n": 37}', '{"n": 48, "heads": 6, "rows": 99}')
    reference = reference.replace('torch.randn(SIZES[size]["n"])', 'torch.randn(SIZES[size]["rows"], SIZES[size]["n"])')
    reference = reference.replace('{"n": 400}', '{"n": 400, "heads": 8, "rows": 4}')
    reference = reference.replace('{"n": 4000}', '{"n": 4000, "heads": 8, "rows": 4}')
    reference = reference.replace("* x * x", "* x.reshape(-1, 6, 8).reshape(-1, 48)")
    other = unseen(load_problem(write_problem(tmp_path / "p", reference=reference)))[0]
    assert other.sizes[Size.SMALL] == {"n": 48, "heads": 6, "rows": 65}


@pytest.mark.parametrize(("small", "large", "chosen"), [(523, 4000, 2049), (523, 900, 513), (1025, 4000, 769)])
def test_what_one_block_covers_is_raised_beyond_it(tmp_path: Path, small: int, large: int, chosen: int) -> None:
    reference = REFERENCE.replace('{"n": 37}', f'{{"n": {small}}}').replace('{"n": 4000}', f'{{"n": {large}}}')
    other = unseen(load_problem(write_problem(tmp_path / "p", reference=reference)))[0]
    assert other.sizes[Size.SMALL]["n"] == chosen


@pytest.mark.parametrize(("small", "large", "chosen"), [(37, 900, 321), (200, 321, 321), (37, 320, 33)])
def test_what_a_usual_block_covers_is_raised_beyond_it(tmp_path: Path, small: int, large: int, chosen: int) -> None:
    reference = REFERENCE.replace('{"n": 37}', f'{{"n": {small}}}').replace('{"n": 4000}', f'{{"n": {large}}}')
    other = unseen(load_problem(write_problem(tmp_path / "p", reference=reference.replace('"n": 400}', '"n": 60}'))))[0]
    assert other.sizes[Size.SMALL]["n"] == chosen


def test_a_width_that_must_divide_is_lowered_further(tmp_path: Path) -> None:
    reference = REFERENCE.replace('{"n": 37}', '{"n": 57}').replace("4000", "90").replace("400", "60")
    reference = reference.replace("* x * x", "* x.reshape(3, -1).reshape(-1)")
    other = unseen(load_problem(write_problem(tmp_path / "p", reference=reference)))[0]
    assert other.sizes[Size.SMALL]["n"] == 33


def test_a_problem_without_large_extents_has_none(tmp_path: Path) -> None:
    reference = REFERENCE.replace('{"n": 37}', '{"n": 9}')
    assert unseen(load_problem(write_problem(tmp_path / "p", reference=reference))) == ()
