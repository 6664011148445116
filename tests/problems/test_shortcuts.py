"""What a kernel might leave out is found, and named in words that hold for the next audit as well."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from problem_files import write_problem

from kernelblaster import audit_problem, list_problems, load_problem
from kernelblaster.errors import ProblemError
from kernelblaster.evaluation.integrity import admission
from kernelblaster.problems.branches import Branch, branches_of, without
from kernelblaster.problems.notes import read_notes
from kernelblaster.problems.problem import Precision
from kernelblaster.problems.reference import reference_digest
from kernelblaster.problems.shortcuts import Half, find_shortcuts, resolved
from kernelblaster.runs.problem_audits import audit_digest

Call = Callable[[torch.Tensor], torch.Tensor]
F = torch.nn.functional
HALF, FAR = (torch.tensor(value, dtype=torch.float64) for value in (0.5, -9.0))


@pytest.mark.parametrize(
    ("call", "low", "high", "inert"),
    [
        (torch.relu, -1, 1, []),
        (torch.relu, 0, 1, ["relu 1: zero"]),
        (torch.nn.ReLU(inplace=True), 0, 1, ["relu 1: zero"]),
        (lambda x: F.leaky_relu(torch.relu(x), 0.2), -1, 1, ["leaky_relu 1: slope"]),
        (lambda x: F.leaky_relu(F.leaky_relu(x)), -1, 1, []),
        (torch.nn.ReLU6(), -1, 4, ["hardtanh 1: upper bound"]),
        (torch.nn.Hardtanh(-2, 2), -4, 4, []),
        (lambda x: x.clamp(min=-5), -4, 4, ["clamp 1: lower bound"]),
        (lambda x: torch.clamp(x, -1, max=9), -4, 4, ["clamp 1: upper bound"]),
        (lambda x: torch.minimum(x, HALF), -4, 4, []),
        (lambda x: torch.maximum(x, FAR), -4, 4, ["maximum 1: second operand"]),
        (F.gelu, -4, 4, []),
        (F.mish, 30, 40, ["mish 1: all but the identity", "mish 1: curve"]),
        (F.hardswish, -4, 4, []),
        (lambda x: F.hardswish(torch.tanh(x)), -4, 4, ["hardswish 1: lower bound", "hardswish 1: upper bound"]),
        (torch.tanh, -0.01, 0.01, ["tanh 1: all but the identity"]),
        (torch.sigmoid, -4, 4, []),
        (F.elu, 0, 4, ["elu 1: negative branch"]),
        (lambda x: x.amax() * x, -4, 4, []),
    ],
)
def test_branches_that_values_never_reach(call: Call, low: float, high: float, inert: list[str]) -> None:
    values = torch.linspace(low, high, 401, dtype=torch.float64)
    plain = call(values.clone())
    found = branches_of(lambda: call(values.clone()))
    assert [str(branch) for branch, effect in found.items() if effect <= 1e-3] == inert
    for branch in found:
        with without(branch):
            changed = call(values.clone())
        assert bool((changed - plain).norm() <= 1e-3 * plain.norm()) == (str(branch) in inert)


def test_only_the_named_call_loses_its_branch() -> None:
    values = torch.linspace(-4, 4, 401)

    def twice() -> torch.Tensor:
        return torch.relu(torch.relu(values) - 1)

    with without(Branch("relu", 2, "zero")):
        assert torch.equal(twice(), torch.relu(values) - 1)
    with without(Branch("relu", 1, "zero")):
        assert torch.equal(twice(), torch.relu(values - 1))


REFERENCE = """
import torch

SIZES = {"small": {"n": 24, "m": 300}, "full": {"n": 24, "m": 300}}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(1 + torch.rand(300))

    def forward(self, x):
        return FORWARD


def get_inputs(size="full"):
    return [torch.randn(24, 300)]


def get_init_inputs(size="full"):
    return []
"""
DRIVER = """
#include <kernelblaster/driver.hpp>
void launch_gpu_implementation(void* output, void* x, void* weight, int64_t n, int64_t m);
static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("weight"), d.size("n"), d.size("m"));
}
KB_DRIVER(call)
"""
LEAKY = "torch.nn.functional.leaky_relu(torch.relu(x) * self.weight)"


def planted(directory: Path, forward: str) -> Path:
    return write_problem(directory, reference=REFERENCE.replace("FORWARD", forward), driver=DRIVER, init=None)


@pytest.fixture
def few_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge's first three distributions alone."""
    monkeypatch.setattr(admission, "ORDER", admission.ORDER[:3])


@pytest.mark.usefixtures("few_sets")
@pytest.mark.parametrize(
    ("forward", "faults"),
    [
        ("torch.relu(x) * self.weight", []),
        (LEAKY, ["leaky_relu 1: slope"]),
        ("x.abs() * self.weight", ["the signs of x"]),
        (
            "x * torch.cat([self.weight[:150], 1 + 0 * self.weight[150:]])",
            ["the second half of weight along axis 0"],
        ),
    ],
)
def test_what_the_judge_would_not_miss_is_a_fault(tmp_path: Path, forward: str, faults: list[str]) -> None:
    found = audit_problem(planted(tmp_path / "p", forward), [Precision.FP32])
    assert found == [f"a kernel without {fault} passes in fp32" for fault in faults]


@pytest.mark.usefixtures("few_sets")
def test_what_is_told_to_stay_is_no_fault(tmp_path: Path) -> None:
    directory = planted(tmp_path / "p", LEAKY)
    (directory / "notes.json").write_text('{"inert": {"leaky_relu 1: slope": "nothing is negative there"}}')
    assert audit_problem(directory, [Precision.FP32]) == []


def test_half_of_a_bias_may_drown_in_sixteen_bits() -> None:
    both = [Half("bias", 0, second=True), Branch("relu", 1, "zero")]
    assert resolved(both, Precision.FP32, tuple(Precision)) == both
    assert resolved(both, Precision.FP16, tuple(Precision)) == both[1:]
    assert resolved(both, Precision.BF16, tuple(Precision)) == []
    assert resolved(both, Precision.BF16, (Precision.BF16,)) == both


def test_notes_that_are_none_are_named(tmp_path: Path) -> None:
    problem = load_problem(planted(tmp_path / "p", "x * self.weight"))
    assert read_notes(problem.directory).inert == {}
    (problem.directory / "notes.json").write_text('{"inrt": {}}')
    with pytest.raises(ProblemError, match="inrt"):
        read_notes(problem.directory)


def test_notes_correct_the_mend_of_a_reference_and_leave_its_digests(tmp_path: Path) -> None:
    problem = load_problem(planted(tmp_path / "p", "x * self.weight"))
    before = (reference_digest(problem), audit_digest(problem))
    (problem.directory / "notes.json").write_text('{"instead": "Inputs are wider.", "published": "More."}')
    corrected = load_problem(problem.directory)
    assert corrected.mends == "Inputs are wider."
    assert (reference_digest(corrected), audit_digest(corrected)) == before
    (problem.directory / "notes.json").write_text('{"inert": {"relu 1: zero": "never negative"}}')
    assert audit_digest(problem) != before[1]


@pytest.mark.slow
def test_shipped_notes_name_what_the_audit_finds() -> None:
    told = {problem: notes for problem in list_problems() if (notes := read_notes(problem.directory)).inert}
    assert len(told) >= 8
    for problem, notes in told.items():
        assert set(notes.inert) <= {str(shortcut) for shortcut in find_shortcuts(problem)}, problem.slug
