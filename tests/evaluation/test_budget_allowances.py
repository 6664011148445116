"""What the budget allows for zeros of a rectifier, for norms that few elements carry, and for operations that torch
lacks in 16 bits hides no kernel that computes with less than fp32: accumulators, weights, small terms show there, too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from kernelblaster.evaluation.correctness.compare import compare
from kernelblaster.evaluation.correctness.error_budget import Budget
from kernelblaster.evaluation.correctness.error_scale import FEW, ErrorScale
from kernelblaster.evaluation.correctness.widening import Widened
from kernelblaster.evaluation.inputs.tensors import TORCH_DTYPES, write_tensor
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.problem import TensorRole, TensorSpec

Layer = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
HALVES = (DType.FLOAT16, DType.BFLOAT16)
ROWS, TERMS, COLUMNS = 96, 512, 160
TYPE = {DType.FLOAT16: torch.float16, DType.BFLOAT16: torch.bfloat16}


def rounded(values: torch.Tensor, like: torch.dtype) -> torch.Tensor:
    return values.to(like).float()


def eight_bits(weights: torch.Tensor) -> torch.Tensor:
    """A scale per column, as quantised weights have it."""
    scale = weights.abs().amax(dim=0) / 127
    return (weights / scale).round() * scale


def honest(x: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Sums in fp32, a tile after the other."""
    total = torch.zeros(x.shape[0], weights.shape[1])
    for part, rows in zip(x.split(32, dim=1), weights.split(32), strict=True):
        total = total + part @ rows
    return (total + bias).relu()


def narrow(dtype: torch.dtype) -> Layer:
    """Partial sums of sixteen terms, kept in 16 bits."""

    def layer(x: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(x.shape[0], weights.shape[1], dtype=dtype)
        for part, rows in zip(x.split(16, dim=1), weights.split(16), strict=True):
            total = total + (part @ rows).to(dtype)
        return (total.float() + bias).relu()

    return layer


def without_small_weights(dtype: torch.dtype) -> Layer:
    """Leaves out what is small by the measure of the format; a quarter of that is less than PyTorch itself loses."""

    def layer(x: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        least = 4 * torch.finfo(dtype).eps * weights.abs().amax()
        return honest(x, torch.where(weights.abs() < least, 0.0, weights), bias)

    return layer


def thresholded(dtype: torch.dtype) -> Layer:
    """Gives zeros in place of small results, by the same measure."""

    def layer(x: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        result = honest(x, weights, bias)
        return torch.where(result < 4 * torch.finfo(dtype).eps * result.amax(), 0.0, result)

    return layer


WRONG: dict[str, Callable[[torch.dtype], Layer]] = {
    "accumulators of 16 bits": narrow,
    "weights of 8 bits": lambda _: lambda x, weights, bias: honest(x, eight_bits(weights), bias),
    "no small weights": without_small_weights,
    "no small results": thresholded,
    "no bias": lambda _: lambda x, weights, bias: honest(x, weights, torch.zeros_like(bias)),
}


def given(dtype: DType, case: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Inputs, weights and a bias, as stored, in float32."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn((ROWS, TERMS), generator=generator)
    weights = torch.randn((TERMS, COLUMNS), generator=generator) / TERMS**0.5
    bias = 0.1 * torch.randn(COLUMNS, generator=generator) - (1.5 if case == "mostly zeros" else 0.0)
    if case == "few carry the norm":
        x[3], weights[:, :4] = 32 * x[3], 32 * weights[:, :4]
    return rounded(x, TYPE[dtype]), rounded(weights, TYPE[dtype]), rounded(bias, TYPE[dtype])


def budget_of(dtype: DType, case: str) -> tuple[torch.Tensor, Budget]:
    """The reference and the budget around what torch computes in the format."""
    x, weights, bias = given(dtype, case)
    reference = (x.double() @ weights.double() + bias.double()).relu()
    plain = (x.to(TYPE[dtype]) @ weights.to(TYPE[dtype]) + bias.to(TYPE[dtype])).relu()
    spec = TensorSpec("output", TensorRole.OUTPUT, dtype, (ROWS, COLUMNS))
    scale = ErrorScale.measure(reference, plain, spec)
    assert case != "few carry the norm" or scale.carriers < FEW
    assert case != "mostly zeros" or float((reference == 0).double().mean()) > 0.8
    return reference, Budget(spec, scale, 2.0)


def passes(dtype: DType, case: str, layer: Layer, file: Path) -> bool:
    reference, budget = budget_of(dtype, case)
    write_tensor(file, layer(*given(dtype, case)).to(TYPE[dtype]))
    return compare(file, reference, budget, 0xFF).passed


@pytest.mark.parametrize("case", ["mostly zeros", "few carry the norm"])
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", WRONG)
def test_less_than_fp32_is_refused(name: str, dtype: DType, case: str, tmp_path: Path) -> None:
    assert passes(dtype, case, honest, tmp_path / "o.bin")
    assert not passes(dtype, case, WRONG[name](TYPE[dtype]), tmp_path / "o.bin")


@pytest.mark.parametrize("dtype", HALVES)
def test_sums_in_sixteen_bits_are_refused_where_torch_lacks_the_operation(dtype: DType, tmp_path: Path) -> None:
    kind = TORCH_DTYPES[dtype]
    x = (torch.rand((4, 8, 20, 20, 20), generator=torch.Generator().manual_seed(2)) + 0.5).to(kind)
    with Widened(kind):
        plain = torch.nn.functional.avg_pool3d(x, 5)
    exact = torch.nn.functional.avg_pool3d(x.double(), 5)
    spec = TensorSpec("output", TensorRole.OUTPUT, dtype, tuple(exact.shape))
    budget = Budget(spec, ErrorScale.measure(exact, plain, spec), 2.0)
    parts = x.unfold(2, 5, 5).unfold(3, 5, 5).unfold(4, 5, 5).flatten(-3)
    narrow_sum = torch.zeros(exact.shape, dtype=kind)
    for term in parts.unbind(-1):
        narrow_sum = narrow_sum + term
    for result, right in ((exact.float(), True), (narrow_sum.float() / 125, False)):
        write_tensor(tmp_path / "o.bin", result.to(kind))
        assert compare(tmp_path / "o.bin", exact, budget, 0xFF).passed is right
