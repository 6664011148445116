"""References that PyTorch allows and few write: tied weights, defaults, dataclasses, inputs changed in place."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from problem_files import REFERENCE, write_problem

from kernelblaster.errors import ProblemError
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.inputs.distributions import Distribution
from kernelblaster.evaluation.inputs.keys import InputKey
from kernelblaster.evaluation.inputs.tensors import read_tensor
from kernelblaster.problems.audit import audit_problem
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload, TensorRole
from kernelblaster.problems.reference import load_reference, results, tensor_specs, weights_of
from kernelblaster.problems.reference_draw import draw_reference

SMALL = StandardWorkload.SMALL
TIED = REFERENCE.replace(
    "    def forward(self, x):\n        return SCALARS",
    """    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(37, 37, bias=False), torch.nn.Linear(37, 37, bias=False)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.b(torch.tanh(self.a(x))) + 0 * SCALARS""",
)
IN_PLACE = REFERENCE.replace("        return", "        x.mul_(3).add_(1)\n        return")


def problem_of(tmp_path: Path, reference: str) -> Problem:
    return load_problem(write_problem(tmp_path / "p", reference=reference))


def test_a_tensor_of_two_names_is_passed_once(tmp_path: Path) -> None:
    problem = problem_of(tmp_path, TIED)
    assert [spec.name for spec in tensor_specs(problem, SMALL, Precision.FP32)] == ["output", "x", "a.weight"]
    assert list(weights_of(load_reference(problem).model(SMALL))) == ["a.weight"]


def test_the_audit_changes_both_names_of_a_tensor(tmp_path: Path) -> None:
    drawn = draw_reference(problem_of(tmp_path, TIED))
    other = torch.randn(37, 37, dtype=torch.float64)
    (output,) = drawn.run({"a.weight": other})
    torch.testing.assert_close(output, other @ torch.tanh(other @ drawn.inputs["x"]))


def judged(reference: str, directory: Path, precision: Precision) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """The tensors that a kernel is given, in float64, and what is expected of it."""
    problem = load_problem(write_problem(directory, reference=reference))
    key = InputKey(problem, precision, SMALL, (Distribution.NORMAL, Distribution.DECLARED), 3)
    with InputStore(directory) as store, store.use(key) as drawn:
        given = [spec for spec in drawn.specs if spec.role is not TensorRole.OUTPUT]
        tensors = {it.name: read_tensor(drawn.files[it.name], it).reshape(it.shape).double() for it in given}
        return tensors, drawn.expected["output"].values.double()


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.BF16])
def test_the_judge_draws_one_value_for_both_names(tmp_path: Path, precision: Precision) -> None:
    given, expected = judged(TIED, tmp_path / "p", precision)
    weight = given["a.weight"]
    torch.testing.assert_close(expected, weight @ torch.tanh(weight @ given["x"]), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.BF16])
def test_an_input_that_the_reference_changes_reaches_a_kernel_as_it_was(tmp_path: Path, precision: Precision) -> None:
    given, expected = judged(IN_PLACE, tmp_path / "p", precision)
    torch.testing.assert_close(expected, 2.5 * (3 * given["x"] + 1) ** 2, rtol=1e-2, atol=1e-2)


def test_the_audit_sees_the_input_of_a_reference_that_changes_it(tmp_path: Path) -> None:
    drawn = draw_reference(problem_of(tmp_path, IN_PLACE))
    before = drawn.inputs["x"].clone()
    (again,) = drawn.run({})
    torch.testing.assert_close(again, drawn.outputs["output"])
    torch.testing.assert_close(again, 2.5 * (3 * before + 1) ** 2)


@pytest.mark.parametrize("arguments", ["self, x, scale=1.0, mask=None", "self, x, *, scale=1.0"])
def test_arguments_that_are_not_given_keep_their_defaults(tmp_path: Path, arguments: str) -> None:
    problem = problem_of(tmp_path, REFERENCE.replace("self, x", arguments).replace("* x * x", "* x * x * scale"))
    assert [spec.name for spec in tensor_specs(problem, SMALL, Precision.FP32)] == ["output", "x"]
    plain = load_problem(write_problem(tmp_path / "plain"))
    assert torch.equal(results(problem)[0], results(plain)[0])
    assert not audit_problem(problem)


def test_more_than_forward_takes_is_refused(tmp_path: Path) -> None:
    problem = problem_of(tmp_path, REFERENCE.replace("self, x", "self, x, y=1.0").replace('["n"])]', '["n"]), 1.0, 2]'))
    with pytest.raises(ProblemError, match="gives 3 inputs"):
        tensor_specs(problem, SMALL, Precision.FP32)


@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
def test_a_reference_may_hold_a_dataclass(tmp_path: Path, future: str) -> None:
    settings = "from dataclasses import dataclass\n\n\n@dataclass\nclass Settings:\n    width: int = 64\n"
    reference = f"{future}import sys\n{settings}{REFERENCE}\nNAME = __name__ in sys.modules\n"
    module = load_reference(problem_of(tmp_path, reference)).module
    assert module.Settings().width == 64
    assert module.NAME


def test_a_loaded_reference_can_be_imported_by_nobody(tmp_path: Path) -> None:
    assert load_reference(problem_of(tmp_path, REFERENCE)).module.__name__ not in sys.modules
