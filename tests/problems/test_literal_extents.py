"""Extents that a module writes out where it draws its inputs are numbers of its sizes, as those with names are."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kernelblaster.problems.interchange.kernelbench.importing import import_kernelbench
from kernelblaster.problems.interchange.kernelbench.small_size import LARGE
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.reference import load_reference, results, run_model, tensor_specs
from kernelblaster.problems.undeclared_extents import undeclared_extents

TEXT = """import torch
import torch.nn as nn
{head}

class Model(nn.Module):
    def __init__(self{arguments}):
        super().__init__()
        {made}

    def forward(self, x{others}):
        {forward}

def get_inputs():
    return [{given}]

def get_init_inputs():
    return {init}
"""


def imported(
    tmp_path: Path,
    *,
    given: str,
    head: str = "",
    arguments: str = "",
    made: str = "pass",
    others: str = "",
    forward: str = "return x * 2",
    init: str = "[]",
) -> Problem:
    text = TEXT.format(
        head=head, arguments=arguments, made=made, others=others, forward=forward, given=given, init=init
    )
    source = tmp_path / "module.py"
    source.write_text(text)
    return import_kernelbench(source, tmp_path / "made")


def shapes(problem: Problem, **extents: int) -> list[tuple[int, ...]]:
    """Of output and inputs and weights, where these extents are others."""
    reference = load_reference(problem)
    reference.module.SIZES["full"].update(extents)
    model, given = reference.model("full"), reference.tensors("full")
    made = [*run_model(problem, model, given), *given.values(), *model.state_dict().values()]
    return [tuple(one.shape) for one in made]


def test_axes_of_an_input_vary_each_by_itself(tmp_path: Path) -> None:
    problem = imported(tmp_path, given="torch.randn(4096, 4096, 33)")
    assert problem.workloads["full"] == {"x_axis_0": 4096, "x_axis_1": 4096, "x_axis_2": 33}
    assert shapes(problem, x_axis_0=2, x_axis_1=3, x_axis_2=5) == [(2, 3, 5), (2, 3, 5)]
    small = tensor_specs(problem, "small", Precision.FP32)
    assert sum(spec.elements for spec in small) < LARGE * (1 << 18)


LAYER = {"arguments": ", width, hidden", "made": "self.fc = nn.Linear(width, hidden)", "forward": "return self.fc(x)"}


def test_a_width_of_input_and_layer_is_one_number_and_a_layers_own_is_called_as_it_is_there(tmp_path: Path) -> None:
    problem = imported(tmp_path, given="torch.randn(512, 4096)", init="[4096, 8192]", **LAYER)
    assert problem.workloads["full"] == {"x_axis_0": 512, "x_axis_1": 4096, "hidden": 8192}
    found = shapes(problem, x_axis_0=2, x_axis_1=3, hidden=5)
    assert found == [(2, 5), (2, 3), (5, 3), (5,)]
    assert "small" in problem.workloads


@pytest.mark.parametrize(
    "head", ["widths = [4096, 8192]", "widths = (4096, 8192)\nmore = widths", "widths = list((4096, 8192))[:2]"]
)
def test_lists_at_the_top_level_hold_extents_unless_they_are_kept_from_the_import(tmp_path: Path, head: str) -> None:
    problem = imported(tmp_path, head=head, given="torch.randn(512, widths[0])", init="widths", **LAYER)
    assert problem.workloads["full"]["x_axis_0"] == 512
    assert ("small" in problem.workloads) is ("[:2]" not in head)


def test_a_dictionary_holds_extents(tmp_path: Path) -> None:
    head = "cfg = dict(width=4096, hidden=8192)"
    problem = imported(tmp_path, head=head, given="torch.randn(512, cfg['width'])", init="list(cfg.values())", **LAYER)
    assert "small" in problem.workloads


def test_an_extent_that_has_to_be_equal_to_a_number_is_that_number(tmp_path: Path) -> None:
    problem = imported(
        tmp_path,
        head="batch = 32768\nshape = (32768,)",
        given="torch.randn(batch, *shape), torch.randn(batch)",
        others=", target",
        forward="return (x * target).clamp(min=0).mean()",
    )
    assert problem.workloads["full"] == {"batch": 32768}
    assert shapes(problem, batch=7) == [(), (7, 7), (7,)]
    assert problem.workloads["small"]["batch"] < 2000


def test_indices_keep_within_the_table_that_they_are_of(tmp_path: Path) -> None:
    problem = imported(
        tmp_path,
        given="torch.randint(0, 50000, (4096,))",
        arguments=", rows, columns",
        made="self.table = nn.Embedding(rows, columns)",
        forward="return self.table(x)",
        init="[50000, 512]",
    )
    for size in problem.workloads:
        with torch.device("cpu"):
            (x,) = load_reference(problem).inputs(size)
        assert int(x.max()) < tensor_specs(problem, size, Precision.FP32)[-1].shape[0]


def test_a_bound_with_a_name_and_the_table_that_it_is_of_are_one_number(tmp_path: Path) -> None:
    problem = imported(
        tmp_path,
        head="words = 50000",
        given="torch.randint(0, words, (4096,))",
        arguments=", rows, columns",
        made="self.table = nn.Embedding(rows, columns)",
        forward="return self.table(x)",
        init="[50000, 512]",
    )
    assert problem.workloads["full"] == {"x_axis_0": 4096, "words": 50000, "columns": 512}
    assert results(problem)[0].shape[1] == problem.workloads["small"]["columns"]


def test_indices_whose_bound_is_written_otherwise_leave_the_module_as_it_is(tmp_path: Path) -> None:
    problem = imported(
        tmp_path,
        given="torch.randint(0, 49_999, (4096,))",
        arguments=", rows",
        made="self.table = nn.Embedding(rows, 2)",
        forward="return self.table(x)",
        init="[50000]",
    )
    assert load_reference(problem).model("full").table.weight.shape == (50000, 2)
    assert "small" not in problem.workloads


def test_an_extent_that_values_are_bounds_of_stays_where_kernels_are_judged_with_fewer(tmp_path: Path) -> None:
    problem = imported(
        tmp_path,
        given="torch.randint(0, 699, (4096,))",
        arguments=", rows",
        made="self.table = nn.Embedding(rows, 2)",
        forward="return self.table(x)",
        init="[700]",
    )
    other = undeclared_extents(problem)
    if other is not None:
        assert results(other)[0].shape[1] == 2


@pytest.mark.parametrize(
    ("given", "extents"),
    [
        ("torch.randn(N, N // 2, 1 << 3)", {"x_axis_2": 8, "N": 64}),
        ("torch.randn(N, 8)[:, 2:6]", {"N": 64}),
        ("torch.randn(N, 8).sum(dim=1)", {"N": 64}),
        ("torch.randn(N) * 3", {"N": 64}),
    ],
)
def test_what_is_no_extent_stays_a_constant(tmp_path: Path, given: str, extents: dict[str, int]) -> None:
    assert imported(tmp_path, head="N = 64", given=given).workloads["full"] == extents


def test_names_that_the_module_has_are_not_taken_again(tmp_path: Path) -> None:
    problem = imported(tmp_path, head="x_axis_0 = 3.5", given="torch.randn(400, 300)", forward="return x * x_axis_0")
    assert problem.workloads["full"] == {"x_axis_0_": 400, "x_axis_1": 300}
    assert problem.scalars == {"x_axis_0": 3.5}


def test_the_file_has_the_lines_that_it_had(tmp_path: Path) -> None:
    problem = imported(tmp_path, head='"Ü"; y = "Ä"', given='torch.randn(400, 300) if "Öß" else torch.randn(9)')
    (given,) = [line for line in problem.reference_path.read_text().split("\n") if "Öß" in line]
    assert "x_axis_0, x_axis_1" in given
