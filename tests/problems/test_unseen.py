"""Extents that no prompt shows differ from the declared ones, and the reference runs on them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from itertools import islice
from math import gcd
from pathlib import Path
from random import Random

import pytest
import torch
from problem_files import REFERENCE, write_problem
from rotation import rotating

from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import Dataset
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload
from kernelblaster.problems.reference import multiply_adds, results, tensor_specs
from kernelblaster.problems.undeclared_extents import SHORT, SHORT_ROW, undeclared_extents
from kernelblaster.problems.varied_parameters import LARGEST, draw_parameters, fixed_parameters

PROBLEMS = Dataset(data_dir() / "kernelbench-cuda").problems()
FIXED = {
    "level2/010": {"hardtanh_min"},
    "level2/026": {"kernel_size", "stride", "padding", "output_padding"},
    "level2/079": {"clamp_min"},
    "level2/083": {"clamp_max"},
}
"""What no judged call varies, as prompts say: bounds that no result reaches, and a window whose output is added to an
input of its extents."""


VARIED = [problem for problem in PROBLEMS if "kernel_size" in problem.workloads[StandardWorkload.SMALL]]


@pytest.mark.parametrize("problem", rotating(PROBLEMS, 12))
def test_every_shipped_problem_has_some(problem: Problem) -> None:
    other = undeclared_extents(problem)
    assert other is not None
    before, after = problem.workloads[StandardWorkload.SMALL], other.workloads[StandardWorkload.SMALL]
    changed = {name for name in before if after[name] != before[name] and before[name] > LARGEST}
    assert changed or max(before.values()) < 2 * LARGEST
    assert all(after[name] % 16 in (1, 15) or after[name] in (SHORT, SHORT_ROW) for name in changed)
    assert all(after[name] <= max(extents[name] for extents in problem.workloads.values()) for name in changed)
    assert set(fixed_parameters(problem, other)) == FIXED.get(str(problem.id), set())
    shapes = [
        {spec.shape for spec in tensor_specs(p, StandardWorkload.SMALL, Precision.FP16)} for p in (problem, other)
    ]
    assert shapes[0] != shapes[1]


def test_extents_that_cannot_change_alone_stay(tmp_path: Path) -> None:
    reference = REFERENCE.replace('{"n": 37}', '{"n": 48, "heads": 6, "rows": 99}')
    reference = reference.replace('torch.randn(SIZES[size]["n"])', 'torch.randn(SIZES[size]["rows"], SIZES[size]["n"])')
    reference = reference.replace('{"n": 400}', '{"n": 400, "heads": 8, "rows": 4}')
    reference = reference.replace('{"n": 4000}', '{"n": 4000, "heads": 8, "rows": 4}')
    reference = reference.replace("* x * x", "* x.reshape(-1, 6, 8).reshape(-1, 48)")
    other = undeclared_extents(load_problem(write_problem(tmp_path / "p", reference=reference)))
    assert other is not None
    assert other.workloads[StandardWorkload.SMALL] == {"n": 48, "heads": 6, "rows": 95}


@pytest.mark.parametrize(("small", "large", "chosen"), [(523, 4000, 2049), (523, 900, 511), (1025, 4000, 1023)])
def test_what_one_block_covers_is_raised_beyond_it(tmp_path: Path, small: int, large: int, chosen: int) -> None:
    reference = REFERENCE.replace('{"n": 37}', f'{{"n": {small}}}').replace('{"n": 4000}', f'{{"n": {large}}}')
    other = undeclared_extents(load_problem(write_problem(tmp_path / "p", reference=reference)))
    assert other is not None
    assert other.workloads[StandardWorkload.SMALL]["n"] == chosen


@pytest.mark.parametrize(("small", "large", "chosen"), [(37, 900, 321), (200, 321, 321), (37, 320, 31)])
def test_what_a_usual_block_covers_is_raised_beyond_it(tmp_path: Path, small: int, large: int, chosen: int) -> None:
    reference = REFERENCE.replace('{"n": 37}', f'{{"n": {small}}}').replace('{"n": 4000}', f'{{"n": {large}}}')
    other = undeclared_extents(
        load_problem(write_problem(tmp_path / "p", reference=reference.replace('"n": 400}', '"n": 60}')))
    )
    assert other is not None
    assert other.workloads[StandardWorkload.SMALL]["n"] == chosen


def test_a_width_that_must_divide_is_lowered_further(tmp_path: Path) -> None:
    reference = REFERENCE.replace('{"n": 37}', '{"n": 57}').replace("4000", "90").replace("400", "60")
    reference = reference.replace("* x * x", "* x.reshape(3, -1).reshape(-1)")
    other = undeclared_extents(load_problem(write_problem(tmp_path / "p", reference=reference)))
    assert other is not None
    assert other.workloads[StandardWorkload.SMALL]["n"] == 33


def test_the_last_tile_is_nearly_full_along_the_first_extent_and_holds_one_element_along_others() -> None:
    relu = next(problem for problem in PROBLEMS if str(problem.id) == "level1/019")
    other = undeclared_extents(relu)
    assert other is not None
    assert other.workloads[StandardWorkload.SMALL] == {"batch_size": 127, "dim": 9985}


@pytest.mark.parametrize(
    ("number", "extents"),
    [
        ("level1/012", {"n": 447, "m": SHORT_ROW}),
        ("level1/040", {"batch_size": 9, "features": SHORT, "dim1": SHORT, "dim2": SHORT_ROW}),
    ],
)
def test_samples_beside_smaller_tensors_are_short(number: str, extents: dict[str, int]) -> None:
    other = undeclared_extents(next(problem for problem in PROBLEMS if str(problem.id) == number))
    assert other is not None
    assert other.workloads[StandardWorkload.SMALL] == extents


@pytest.mark.parametrize(("length", "chosen"), [(600, 2049), (200, 321), (37, 321), (20, SHORT_ROW), (4, 4)])
def test_samples_are_short_unless_they_are_raised(tmp_path: Path, length: int, chosen: int) -> None:
    reference = REFERENCE.replace('{"n": 37}', f'{{"rows": 99, "n": {length}}}').replace(
        '{"n": 4', '{"rows": 99, "n": 4'
    )
    reference = reference.replace("(self, x)", "(self, x, w)").replace("* x * x", "* x * w")
    reference = reference.replace("[torch.randn(", '[torch.randn(99, SIZES[size]["n"]), torch.randn(')
    other = undeclared_extents(load_problem(write_problem(tmp_path / "p", reference=reference)))
    assert (length if other is None else other.workloads[StandardWorkload.SMALL]["n"]) == chosen


@pytest.mark.parametrize("number", ["level1/001", "level1/023", "level1/036", "level2/086", "level3/001", "level3/043"])
def test_samples_of_other_problems_are_not_short(number: str) -> None:
    """Weights of a product are no part of the output's shape, even where it is that of an input."""
    problem = next(problem for problem in PROBLEMS if str(problem.id) == number)
    other = undeclared_extents(problem)
    assert other is not None
    declared = problem.workloads[StandardWorkload.SMALL].items()
    assert min(other.workloads[StandardWorkload.SMALL][name] / extent for name, extent in declared) > 0.4


def test_windows_strides_and_scalars_change_too() -> None:
    def varied(number: str) -> Problem:
        other = undeclared_extents(next(problem for problem in PROBLEMS if str(problem.id) == number))
        assert other is not None
        return other

    window = varied("level1/042").workloads[StandardWorkload.SMALL]
    assert {name: window[name] for name in ("kernel_size", "stride", "padding", "dilation")} == {
        "kernel_size": 5,
        "stride": 2,
        "padding": 2,
        "dilation": 2,
    }
    assert varied("level1/040").scalars == {"eps": 2.0**-4}


NOTHING_TO_DRAW = {"level2/026"}
"""Of those with other parameters, what the undeclared extents leave as declared."""


@pytest.mark.parametrize("problem", rotating(VARIED, 8))
def test_drawn_parameters_run_are_new_and_stay_cheap(problem: Problem) -> None:
    other = undeclared_extents(problem)
    assert other is not None
    # Of the few values that a draw tries, none may fit an input of few elements: another seed has others.
    draws = ((seed, draw_parameters(problem, other, Random(seed))) for seed in range(24))
    found = list(islice((draw for draw in draws if draw[1] is not None), 3))
    assert bool(found) == (str(problem.id) not in NOTHING_TO_DRAW)
    for seed, drawn in found:
        assert drawn is not None
        assert drawn == draw_parameters(problem, other, Random(seed))
        known = [one.workloads[StandardWorkload.SMALL] for one in (problem, other)]
        changed = {
            name: value for name, value in drawn.workloads[StandardWorkload.SMALL].items() if value != known[1][name]
        }
        assert changed
        assert not any(value in (extents[name] for extents in known) for name, value in changed.items())
        assert multiply_adds(drawn) <= 4 * multiply_adds(other)
        assert all(output.numel() for output in results(drawn))


def test_draws_meet_large_windows_and_common_factors_in_a_good_share_of_runs() -> None:
    def share(number: str, met: Callable[[Mapping[str, int]], bool]) -> float:
        problem = next(problem for problem in PROBLEMS if str(problem.id) == number)
        other = undeclared_extents(problem)
        assert other is not None
        drawn = [draw_parameters(problem, other, Random(seed)) or other for seed in range(60)]
        return sum(met(one.workloads[StandardWorkload.SMALL]) for one in drawn) / len(drawn)

    assert share("level1/045", lambda drawn: drawn["kernel_size"] > 24) > 0.15
    assert share("level1/079", lambda drawn: 1 < gcd(drawn["stride"], drawn["dilation"]) < drawn["stride"]) > 0.15


def test_where_no_small_parameter_varies_none_is_drawn() -> None:
    problem = next(problem for problem in PROBLEMS if str(problem.id) == "level1/001")
    other = undeclared_extents(problem)
    assert other is not None
    assert draw_parameters(problem, other, Random(0)) is None


@pytest.mark.parametrize("spelled", ['SCALARS["factor"]', "self.factor"])
def test_a_reference_computes_with_the_scalars_of_its_problem(tmp_path: Path, spelled: str) -> None:
    default = 'class Model(torch.nn.Module):\n    def __init__(self, factor=SCALARS["factor"]):\n'
    default += "        super().__init__()\n        self.factor = factor\n"
    reference = REFERENCE.replace('SCALARS["factor"] * x', f"{spelled} * x")
    reference = reference.replace("class Model(torch.nn.Module):\n", default)
    problem = load_problem(write_problem(tmp_path / "p", reference=reference))
    doubled = dataclasses.replace(problem, scalars={"factor": 5.0})
    (once,), (twice,) = results(problem), results(doubled)
    assert torch.allclose(2 * once, twice)
    other = undeclared_extents(problem)
    assert other is not None
    assert other.scalars != problem.scalars


def test_what_the_reference_does_not_depend_on_is_fixed(tmp_path: Path) -> None:
    """Another value would be one that the reference does not know of."""
    reference = REFERENCE.replace('SCALARS["factor"]', "2.5").replace('"n": 4', '"groups": 4, "n": 4')
    reference = reference.replace('"n": 37', '"groups": 4, "n": 37')
    problem = load_problem(write_problem(tmp_path / "p", reference=reference))
    other = undeclared_extents(problem)
    assert other is not None
    assert fixed_parameters(problem, other) == ("groups", "factor")


def test_where_all_extents_are_below_a_tile_each_is_one_larger(tmp_path: Path) -> None:
    reference = REFERENCE.replace('{"n": 37}', '{"n": 9}').replace('SCALARS["factor"]', "2.5")
    other = undeclared_extents(load_problem(write_problem(tmp_path / "p", reference=reference)))
    assert other is not None
    assert other.workloads == {StandardWorkload.SMALL: {"n": 10}}


def test_a_problem_whose_tensors_depend_on_no_parameter_has_none(tmp_path: Path) -> None:
    reference = REFERENCE.replace('SIZES[size]["n"]', "9").replace('SCALARS["factor"]', "2.5")
    assert undeclared_extents(load_problem(write_problem(tmp_path / "p", reference=reference))) is None
