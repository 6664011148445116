"""Which input sets can tell right from wrong."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch

from kernelblaster.evaluation.correctness import reference_output
from kernelblaster.evaluation.correctness.choosing import choose
from kernelblaster.evaluation.correctness.compare import would_be_refused
from kernelblaster.evaluation.correctness.error_scale import ErrorScale
from kernelblaster.evaluation.correctness.input_draws import Draw
from kernelblaster.evaluation.correctness.reference_output import ReferenceOutput, ReferenceTensor, informative
from kernelblaster.evaluation.correctness.widening import Jittered
from kernelblaster.evaluation.inputs.distributions import ACCUMULATION, Distribution, attempts
from kernelblaster.evaluation.inputs.keys import InputKey
from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import find_problem
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.problem import Precision, StandardWorkload, TensorRole, TensorSpec
from kernelblaster.problems.reference import run_model, tensor_specs
from kernelblaster.problems.undeclared_extents import undeclared_extents

SPEC = TensorSpec("output", TensorRole.OUTPUT, DType.BFLOAT16, (24, 105))


@pytest.mark.parametrize("distribution", [Distribution.OFFSET, Distribution.SPARSE])
@pytest.mark.parametrize(("share", "informs"), [(0.4, True), (0.9, False)])
def test_structured_inputs_on_which_torch_loses_more_than_the_last_rounding_tell_nothing(
    distribution: Distribution, share: float, informs: bool
) -> None:
    exact = torch.linspace(1.0, 2.0, SPEC.elements, dtype=torch.float64).reshape(SPEC.shape)
    loss = share * torch.finfo(torch.bfloat16).eps
    scale = replace(ErrorScale.measure(exact, exact.bfloat16(), SPEC), plain_norm=loss)
    expected = ReferenceOutput((ReferenceTensor(SPEC, exact, scale),), ())
    assert informative(expected, distribution) is informs
    assert informative(expected, Distribution.NORMAL), "random inputs tell something where a whole chain is rounded"


@pytest.mark.parametrize(("rare", "informs"), [(0.05, False), (0.9, True)])
def test_tiny_inputs_that_leave_the_levels_of_a_few_channels_tell_nothing(rare: float, informs: bool) -> None:
    """However many values lie about them, as long as these are rare."""
    random = torch.Generator().manual_seed(0)
    levels = torch.linspace(0.5, 1.0, 6, dtype=torch.float64)[torch.arange(SPEC.elements) % 6].reshape(SPEC.shape)
    spread = torch.rand(SPEC.shape, generator=random, dtype=torch.float64)
    exact = torch.where(torch.rand(SPEC.shape, generator=random) < rare, levels + spread, levels)
    expected = ReferenceOutput((ReferenceTensor(SPEC, exact, ErrorScale.measure(exact, exact.bfloat16(), SPEC)),), ())
    assert informative(expected, Distribution.TINY, layers=1) is informs
    assert informative(expected, Distribution.TINY), "without layers no biases are all that counts"


def test_a_small_output_of_a_network_is_rounded_twice_before_its_norm_is_a_budget() -> None:
    """A few values that rest on the same early roundings are all right by luck, or none."""
    problem, widest = find_problem("level3/031", data_dir() / "kernelbench-cuda"), 1.0
    specs = tensor_specs(problem, StandardWorkload.SMALL, Precision.BF16)
    for seed in range(3):
        chosen = choose(InputKey(problem, Precision.BF16, StandardWorkload.SMALL, (Distribution.NORMAL,), seed), specs)
        with torch.no_grad():
            plain = torch_result(chosen.drawn, torch.bfloat16)
        assert chosen.expected is not None
        (tensor,) = chosen.expected.tensors
        assert tensor.scale is not None
        once = ErrorScale.measure(tensor.values, plain, tensor.spec).plain_norm
        assert tensor.scale.plain_norm >= once
        widest = max(widest, tensor.scale.plain_norm / once)
    assert widest > 1.05


def test_roundings_of_a_deep_network_with_coarse_weights_are_granted() -> None:
    """Weights of one size, whatever their number, would amplify a rounding in every layer."""
    problem = undeclared_extents(find_problem("level3/020", data_dir() / "kernelbench-cuda"))
    assert problem is not None
    specs = tensor_specs(problem, StandardWorkload.SMALL, Precision.FP32)
    eps = torch.finfo(torch.float32).eps
    for seed in range(8):
        key = InputKey(problem, Precision.FP32, StandardWorkload.SMALL, attempts(Distribution.COARSE), seed)
        chosen = choose(key, specs)
        assert chosen.expected is not None
        (tensor,) = chosen.expected.tensors
        with torch.no_grad(), Jittered(3 * eps, torch.device("cpu")):
            otherwise = torch_result(chosen.drawn, torch.float32)
        assert chosen.recipe.distribution is Distribution.COARSE
        assert not would_be_refused(tensor, otherwise, 2.0, ACCUMULATION)
        assert would_be_refused(tensor, 1.001 * otherwise, 2.0, ACCUMULATION)


def test_a_reference_in_float32_grants_what_float32_arithmetic_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's errors in the format of the reference are none, whatever another order of sums gives."""
    monkeypatch.setattr(reference_output, "_free_memory", lambda device: 0)
    problem = find_problem("level1/034", data_dir() / "kernelbench-cuda")
    key = InputKey(problem, Precision.FP32, StandardWorkload.SMALL, (Distribution.OFFSET,), 0)
    chosen = choose(key, tensor_specs(problem, StandardWorkload.SMALL, Precision.FP32))
    assert chosen.expected is not None
    (tensor,) = chosen.expected.tensors
    assert chosen.expected.notes, "a reader is told"
    (x,) = chosen.drawn.inputs.values()
    centred = x - x.sum(dim=3, keepdim=True).sum(dim=2, keepdim=True) / (x.shape[2] * x.shape[3])
    otherwise = centred * torch.rsqrt(centred.square().mean(dim=(2, 3), keepdim=True) + 1e-5)
    assert not torch.equal(otherwise, tensor.values)
    assert not would_be_refused(tensor, otherwise, 2.0, ACCUMULATION)
    assert would_be_refused(tensor, 1.01 * otherwise, 2.0, ACCUMULATION)


def torch_result(drawn: Draw, dtype: torch.dtype) -> torch.Tensor:
    """What PyTorch makes of a draw in its storage type."""
    module = copy.deepcopy(drawn.module).to(dtype)
    module.load_state_dict({name: weight.to(dtype) for name, weight in drawn.weights.items()}, strict=False)
    (result,) = run_model(drawn.problem, module, {name: value.to(dtype) for name, value in drawn.inputs.items()})
    return result


def test_rounding_a_result_alone_leaves_structured_inputs_informative() -> None:
    exact = 1.0 + torch.rand(SPEC.shape, dtype=torch.float64) / 100  # where a spacing is largest beside the value
    expected = ReferenceOutput((ReferenceTensor(SPEC, exact, ErrorScale.measure(exact, exact.bfloat16(), SPEC)),), ())
    assert informative(expected, Distribution.OFFSET)


def test_structured_inputs_on_which_torch_is_far_off_at_one_element_tell_nothing() -> None:
    exact = torch.linspace(0.5, 0.75, SPEC.elements, dtype=torch.float64).reshape(SPEC.shape)
    for off, informs in ((0.0, True), (0.05, False)):
        plain = exact.bfloat16().double()
        plain[3, 7] += off
        scale = ErrorScale.measure(exact, plain, SPEC)
        assert scale.plain_norm < torch.finfo(torch.bfloat16).eps / 2, "no norm shows one element"
        expected = ReferenceOutput((ReferenceTensor(SPEC, exact, scale),), ())
        assert informative(expected, Distribution.SPARSE) is informs
        assert informative(expected, Distribution.NORMAL)
