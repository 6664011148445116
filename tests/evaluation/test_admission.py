"""Problems that the judge could be fooled with are refused by the audit, in the precision in which it could be."""

from __future__ import annotations

from pathlib import Path

import pytest
from budget_support import reduced

from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.integrity.admission import admission_faults
from kernelblaster.problems.audit import audit_problem
from kernelblaster.problems.branches import Branch
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.shortcuts import find_shortcuts

REFERENCE = """
import torch

SIZES = {"small": {"n": 7, "m": 300}, "full": {"n": 7, "m": 300}}


class Model(torch.nn.Module):
    def forward(self, x, y):
        return FORWARD


def get_inputs(size="full"):
    return [torch.randn(7, 300), torch.randn(7, 300)]


def get_init_inputs(size="full"):
    return []
"""
DRIVER = """
#include <kernelblaster/driver.hpp>
void launch_gpu_implementation(void* output, void* x, void* y, int64_t n, int64_t m);
static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.input("y"), d.size("n"), d.size("m"));
}
KB_DRIVER(call)
"""


def planted(directory: Path, forward: str) -> Problem:
    directory.mkdir()
    (directory / "reference.py").write_text(REFERENCE.replace("FORWARD", forward))
    (directory / "driver.cpp").write_text(DRIVER)
    (directory / "init.cu").write_text("void launch_gpu_implementation(void*, void*, void*, int64_t, int64_t) {}\n")
    return load_problem(directory)


@pytest.mark.parametrize(
    ("forward", "precision", "faults"),
    [
        ("x * y", Precision.BF16, []),
        ("x * x * (1 + 0.004 * torch.tanh(y))", Precision.FP32, []),
        (
            "x * x * (1 + 0.004 * torch.tanh(y))",
            Precision.BF16,
            ["a kernel that ignores y passes in bf16"],
        ),
        (
            "torch.sign(x * x + 1) * 5 + 0.01 * torch.tanh(x + y)",
            Precision.BF16,
            [
                "a kernel that ignores x passes in bf16",
                "a kernel that ignores y passes in bf16",
                "a kernel that gives the mean passes in bf16",
                "the result of other inputs passes in bf16",
            ],
        ),
        ("torch.zeros_like(x * y)", Precision.FP16, ["a kernel that gives zeros passes in fp16"]),
    ],
)
def test_stand_ins_that_pass_are_named(
    store: InputStore, tmp_path: Path, forward: str, precision: Precision, faults: list[str]
) -> None:
    found = admission_faults(planted(tmp_path / "p", forward), precision, store)
    assert set(faults) <= set(found)
    assert bool(faults) == bool(found)


def test_the_precision_matters_where_the_reference_alone_looks_sound(store: InputStore, tmp_path: Path) -> None:
    problem = planted(tmp_path / "p", "x * x * (1 + 0.004 * torch.tanh(y))")
    assert audit_problem(problem) == []
    assert admission_faults(problem, Precision.BF16, store)


@pytest.mark.parametrize("slug", ["level1/004_Matrix_vector_multiplication", "level1/095_CrossEntropyLoss"])
@pytest.mark.parametrize("precision", Precision)
def test_shipped_problems_are_sound(store: InputStore, tmp_path: Path, slug: str, precision: Precision) -> None:
    assert admission_faults(reduced(slug, tmp_path), precision, store) == []


@pytest.mark.parametrize("spread", [1, 500])  # declared inputs stay within the bounds, others do not; or none do
def test_whoever_leaves_out_the_bound_of_an_index_does_not_pass(store: InputStore, tmp_path: Path, spread: int) -> None:
    problem = planted(tmp_path / "p", f"y.reshape(-1)[({spread} * x.nan_to_num() + 1000).clamp(0, 2099).long()]")
    bounds = find_shortcuts(problem)
    assert any(isinstance(one, Branch) for one in bounds) is (spread == 1)
    found = admission_faults(problem, Precision.FP32, store, shortcuts=bounds)
    assert not [fault for fault in found if "clamp" in fault]
