"""Sizes that a module declares are those of its problem; what it calls so itself is its own; none is told."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kernelblaster import import_problems
from kernelblaster.errors import ProblemError
from kernelblaster.problems.interchange.kernelbench.importing import import_kernelbench
from kernelblaster.problems.interchange.kernelbench.small_size import size_notes
from kernelblaster.problems.problem import Problem
from kernelblaster.problems.reference import load_reference

TEXT = """import torch
import torch.nn as nn
N, M = 65536, 512
{head}
class Model(nn.Module):
    def forward(self, x{others}):
        return {forward}

def get_inputs():
    return [{given}]

def get_init_inputs():
    return []
"""


def write(
    path: Path, head: str = "", forward: str = "x * 2", given: str = "torch.randn(N, M)", others: str = ""
) -> Path:
    path.write_text(TEXT.format(head=head, forward=forward, given=given, others=others))
    return path


def imported(tmp_path: Path, head: str, **parts: str) -> Problem:
    return import_kernelbench(write(tmp_path / "module.py", head, **parts), tmp_path / "made")


@pytest.mark.parametrize(
    ("declared", "sizes"),
    [
        ('{"small": {"N": 40}}', {"small": (40, 512), "full": (65536, 512)}),
        ('{"small": {"N": 40, "M": 3}, "b": {"N": 9}}', {"small": (40, 3), "b": (9, 512), "full": (65536, 512)}),
        ('{"small": {"N": 40}, "full": {"M": 1024}}', {"small": (40, 1024), "full": (65536, 1024)}),
    ],
)  # fmt: skip
def test_declared_sizes_have_the_modules_other_numbers(
    tmp_path: Path, declared: str, sizes: dict[str, tuple[int, int]]
) -> None:
    problem = imported(tmp_path, f"SIZES = {declared}")
    assert {size: (each["N"], each["M"]) for size, each in problem.workloads.items()} == sizes
    assert load_reference(problem).inputs("small")[0].shape == sizes["small"]


def test_without_small_among_them_that_is_found(tmp_path: Path) -> None:
    sizes = imported(tmp_path, 'SIZES = {"batch_1": {"N": 7}}').workloads
    assert list(sizes) == ["small", "batch_1", "full"]


@pytest.mark.parametrize("declared", ['{"small": {"K": 40}}', '{"small": {"N": 7, "M": 3}}'])
def test_a_size_that_cannot_be_is_refused(tmp_path: Path, declared: str) -> None:
    with pytest.raises(ProblemError) as caught:
        imported(tmp_path, f"SIZES = {declared}", forward="x[:, :M].view(-1, 8)")
    assert caught.value.hint


@pytest.mark.parametrize(
    ("head", "forward", "factor"),
    [
        ("SIZES = [2, 3, 4]", "x * SIZES[1]", 3),
        ("SIZES: list = [2, 3, 4]\nSIZES_ = 5", "x * sum(SIZES) * SIZES_", 45),
        ('SIZES = {"a": 3.0}', 'x * SIZES["a"]', 3),
        ('SCALARS = {"a": 3.0}', 'x * SCALARS["a"]', 3),
        ("SIZES = 3\ndef helper(SCALES, SIZE=SIZES):\n    SCALARS = SIZE\n    return SCALARS", "x * helper(0)", 3),
    ],
)
def test_a_name_of_the_module_keeps_its_meaning(tmp_path: Path, head: str, forward: str, factor: int) -> None:
    problem = imported(tmp_path, head, forward=forward)
    (x,), model = load_reference(problem).inputs("small"), load_reference(problem).model("small")
    torch.testing.assert_close(model(x), x * factor)


@pytest.mark.parametrize(
    "head",
    ["SIZES = [3]\ndef helper(SIZES):\n    return 3", 'SIZES = [3]\nTEXT = f"{SIZES}"', "import math as SIZES"],
)
def test_a_name_that_cannot_be_another_is_refused(tmp_path: Path, head: str) -> None:
    with pytest.raises(ProblemError) as caught:
        imported(tmp_path, head)
    assert "SIZES" in caught.value.message
    assert caught.value.hint


FIXED = "torch.randn(*Config.shape)"


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"head": "class Config:\n    shape = (65536, 512)", "given": FIXED}, ["x_axis_0", "x_axis_1"]),
        ({"forward": "x.view(65536, 512)"}, ["N", "M"]),
        ({}, []),
        ({"head": "class Config:\n    shape = (128, 64)", "given": FIXED}, []),
    ],
)
def test_who_has_no_small_size_is_told_what_each_number_leads_to(
    tmp_path: Path, parts: dict[str, str], told: list[str]
) -> None:
    notes = list(size_notes(imported(tmp_path, **{"head": "", **parts})))
    assert len(notes) == bool(told)
    assert all(f" {name} " in note and "SIZES" in note for note in notes for name in told)


def test_an_import_tells_it(tmp_path: Path) -> None:
    level = tmp_path / "checkout" / "level1"
    level.mkdir(parents=True)
    write(level / "1_Fixed.py", "class Config:\n    shape = (65536, 512)", given=FIXED)
    write(level / "2_Free.py")
    notes = {one.definition: one.notes for one in import_problems(tmp_path / "checkout", tmp_path / "made").problems}
    assert notes["level1/001_Fixed"]
    assert not notes["level1/002_Free"]
