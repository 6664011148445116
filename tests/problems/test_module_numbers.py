"""Which numbers of a module become parameters, and what follows from them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from kernelblaster.errors import ProblemError
from kernelblaster.problems.interchange.kernelbench.importing import import_kernelbench
from kernelblaster.problems.interchange.kernelbench.module_numbers import number_of
from kernelblaster.problems.problem import Problem
from kernelblaster.problems.reference import load_reference

TEXT = """import torch
import torch.nn as nn
{head}

class Model(nn.Module):
    {inner}
    def forward(self, x):
        return {forward}

def get_inputs():
    return [torch.randn({given})]

def get_init_inputs():
    return []
"""


def imported(tmp_path: Path, head: str, given: str, *, inner: str = "", forward: str = "x * 2") -> Problem:
    source = tmp_path / "module.py"
    source.write_text(TEXT.format(head=head, given=given, inner=inner, forward=forward))
    return import_kernelbench(source, tmp_path / "made")


def shape(problem: Problem, **extents: int) -> tuple[int, ...]:
    """Of the input, where these extents are others."""
    reference = load_reference(problem)
    reference.module.SIZES["full"].update(extents)
    return tuple(reference.inputs("full")[0].shape)


@pytest.mark.parametrize(
    ("written", "value"),
    [("2 ** 9", 512), ("1 << 10", 1024), ("1000 // 3", 333), ("(3 + 5) * 8 - 1", 63), ("1024 >> 2", 256)],
)  # fmt: skip
def test_arithmetic_on_whole_numbers_is_a_number(tmp_path: Path, written: str, value: int) -> None:
    problem = imported(tmp_path, f"N = {written}", "N, 8")
    assert problem.workloads["full"]["N"] == value
    assert shape(problem, N=5) == (5, 8)


@pytest.mark.parametrize("written", ["7 // 0", "1 << -1", "1.5 << 2", "2 ** (10 ** 9)", "1 << 10 ** 9", "(-8) ** 0.5"])
def test_arithmetic_that_comes_to_nothing_is_no_number(written: str) -> None:
    assert number_of(ast.parse(written, mode="eval").body) is None


@pytest.mark.parametrize(
    ("follows", "given", "expected"),
    [
        ("H = N // 2", "N, H", (6, 3)),
        ("H = N // 2\nQ = H * 4 + 1", "H, Q", (3, 13)),
        ("shape = (N, N - 1)", "shape", (6, 5)),
        ("widths = [N * 2**i for i in range(3)]", "*widths", (6, 12, 24)),
        ("cfg = {'n': N, 'm': int(N / 2)}", "cfg['n'], cfg['m']", (6, 3)),
        ("A, B = N + 1, max(N, 2)", "A, B", (7, 6)),
    ],
)
def test_what_follows_from_a_number_follows_at_every_size(
    tmp_path: Path, follows: str, given: str, expected: tuple[int, ...]
) -> None:
    problem = imported(tmp_path, f"N = 64\n{follows}", given)
    assert problem.workloads["full"] == {"N": 64}
    assert shape(problem, N=6) == expected


@pytest.mark.parametrize(
    "kept",
    [
        "class Config:\n    n = N",
        "def helper(n=N):\n    return n",
        "shape = torch.Size([N])",
        "H = N // 2\ndef helper(n=H):\n    return n",
        "if N > 3:\n    print()",
    ],
)
def test_what_is_kept_from_the_import_stays_a_constant(tmp_path: Path, kept: str) -> None:
    assert imported(tmp_path, f"N = 64\nM = 32\n{kept}", "M, N").workloads["full"] == {"M": 32}


@pytest.mark.parametrize(
    "inner",
    [
        "class Inner(nn.Module):\n        def width(self):\n            return N\n",
        "def call(self):\n        return (lambda n=N: n)()\n",
    ],
)
def test_what_runs_later_keeps_nothing(tmp_path: Path, inner: str) -> None:
    assert imported(tmp_path, "N = 64", "N, N", inner=inner).workloads["full"] == {"N": 64}


def test_what_runs_as_a_program_alone_keeps_nothing(tmp_path: Path) -> None:
    head = 'N = 64\nif __name__ == "__main__":\n    print(N)'
    assert imported(tmp_path, head, "N, N").workloads["full"] == {"N": 64}


def test_a_line_below_what_is_put_in_is_told_as_the_file_has_it(tmp_path: Path) -> None:
    with pytest.raises(ProblemError) as caught:
        imported(tmp_path, "N = 64\nH = N // 2", "H, 8, bad")
    line = 1 + [line.strip() for line in (tmp_path / "module.py").read_text().split("\n")].index(
        "return [torch.randn(H, 8, bad)]"
    )
    assert caught.value.message.startswith(f"{tmp_path / 'module.py'}:{line}: ")


DRAWN = """import torch
import torch.nn as nn
{head}

def helper():
    return {helper}

class Model(nn.Module):
    def forward(self, x):
        return {forward}

def get_inputs():
    torch.manual_seed(seed)
    return [{given}]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("given", "helper", "forward", "numbers"),
    [
        ("torch.randn(N, N) * std", "0", "x * 2", {"N"}),
        ("torch.randn(N, N) * helper()", "std", "x * 2", {"N"}),
        ("torch.randn(N, int(N * std))", "0", "x * 2", {"N", "std"}),
        ("torch.randn(N, N) * std", "0", "x * std", {"N", "std"}),
        ("torch.randn(N, N) * std", "std", "x * helper()", {"N", "std"}),
        ("torch.randn(N, N) * half", "0", "x * 2", {"N"}),
        ("torch.randn(N, N) * half", "half", "x * helper()", {"N", "std"}),
        ("torch.randn(N, N)", "0", 'x * globals()["std"]', {"N", "std", "seed"}),
    ],
)
def test_numbers_that_inputs_are_drawn_with_are_the_kernels_where_a_shape_follows_or_the_model_reads_them(
    tmp_path: Path, given: str, helper: str, forward: str, numbers: set[str]
) -> None:
    source = tmp_path / "module.py"
    head = "N = 300\nseed = 42\nstd = 0.02\nhalf = std / 2"
    source.write_text(DRAWN.format(head=head, given=given, helper=helper, forward=forward))
    problem = import_kernelbench(source, tmp_path / "made")
    assert {*problem.workloads["full"], *problem.scalars} == numbers
