"""Long sums of equal terms in fp32: what an honest kernel loses passes, what another statistic gives does not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kernelblaster.evaluation.correctness.compare import compare
from kernelblaster.evaluation.correctness.error_budget import Budget
from kernelblaster.evaluation.correctness.error_scale import ErrorScale, Losses
from kernelblaster.evaluation.correctness.findings import Findings
from kernelblaster.evaluation.correctness.long_sums import LANES, LANES_OF_ONE, LongestSum, drifts
from kernelblaster.evaluation.inputs.distributions import ACCUMULATION
from kernelblaster.evaluation.inputs.tensors import TORCH_DTYPES, write_tensor
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.problem import TensorRole, TensorSpec

SAMPLES, TERMS, THREADS, SERIAL = 16, 1 << 15, 8, 4096
EPSILON = 1e-5


def serial_sum(values: torch.Tensor) -> torch.Tensor:
    """Per sample, each thread adding one term after the other."""
    total = torch.zeros(values.shape[0], THREADS)
    for part in values.split(THREADS, dim=1):
        total = total + part
    return total.sum(1, keepdim=True)


def normalised(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """In fp32, in two passes."""
    centred = x - serial_sum(x) / x.shape[1]
    return centred * (serial_sum(centred.square()) / x.shape[1] + EPSILON).rsqrt() * weight + bias


@pytest.fixture
def mostly_zero() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Samples that begin far away and are zero then: squared distances from the mean are two numbers.

    The offset takes away most of some that are far away, so that the errors of the scale stand alone there.
    """
    torch.manual_seed(3)
    begins = torch.arange(TERMS) < TERMS * 2 // 5
    x = torch.where(begins, torch.linspace(8, 64, SAMPLES)[:, None], torch.zeros(())).half().float()
    weight = (1 + 0.2 * torch.randn(TERMS)).half().float()
    bias = 0.2 * torch.randn(TERMS) - torch.where(torch.arange(TERMS) < 64, 1.22 * weight, torch.zeros(()))
    return x, weight, bias.half().float()


def judged(
    out: torch.Tensor, given: tuple[torch.Tensor, torch.Tensor, torch.Tensor], dtype: DType, path: Path, serial: float
) -> Findings:
    """Compared with float64, within the budget of a kernel one thread of which adds so many terms."""
    spec = TensorSpec("output", TensorRole.OUTPUT, dtype, (SAMPLES, TERMS))
    x, weight, bias = (tensor.double() for tensor in given)
    reference = torch.nn.functional.layer_norm(x, (TERMS,), weight, bias, EPSILON)
    plain = reference.to(TORCH_DTYPES[dtype])
    losses = Losses(torch.full((SAMPLES,), ACCUMULATION), drifts(given[0], serial))
    write_tensor(path, out.to(TORCH_DTYPES[dtype]))
    budget = Budget(spec, ErrorScale.measure(reference, plain, spec, losses), 2.0)
    return compare(path, reference, budget, 0xFF)


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.FLOAT32])
def test_roundings_of_one_sign_pass(
    mostly_zero: tuple[torch.Tensor, torch.Tensor, torch.Tensor], dtype: DType, tmp_path: Path
) -> None:
    out = normalised(*mostly_zero)
    assert judged(out, mostly_zero, dtype, tmp_path / "out", SERIAL).passed
    strict = judged(out, mostly_zero, dtype, tmp_path / "out", 0)
    assert strict.passed is (dtype is DType.FLOAT16), "in fp16 the rounding of results covers most of it"


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.FLOAT32])
def test_a_variance_of_half_a_sample_does_not(
    mostly_zero: tuple[torch.Tensor, torch.Tensor, torch.Tensor], dtype: DType, tmp_path: Path
) -> None:
    x, weight, bias = mostly_zero
    half = x[:, : TERMS // 2]
    centred = x - x.mean(1, keepdim=True)
    wrong = centred * (half.var(1, keepdim=True) + EPSILON).rsqrt() * weight + bias
    assert not judged(wrong, mostly_zero, dtype, tmp_path / "out", SERIAL).passed


def test_values_of_which_no_two_are_equal_are_granted_next_to_nothing() -> None:
    torch.manual_seed(1)
    alike, different, none = torch.zeros(1 << 16), torch.randn(1 << 16), torch.full((1 << 16,), -torch.inf)
    alike[::97] = 1.0
    found = drifts(torch.stack([alike, different, none]), SERIAL)
    assert found[0] > 2.0**-14
    assert found[1] < ACCUMULATION / 3
    assert found[2] == 0
    assert not drifts(alike[None], 64).any()


@pytest.mark.parametrize(
    ("operation", "serial"),
    [
        (lambda x: torch.nn.functional.layer_norm(x, x.shape[1:]), (1 << 20) / LANES),
        (lambda x: torch.nn.functional.group_norm(x, 64), (1 << 14) / LANES),
        (lambda x: torch.softmax(x.flatten(1), 1), (1 << 20) / LANES),
        (lambda x: x.mean(dim=1), 64 / LANES),
        (lambda x: torch.nn.functional.mse_loss(x, x + 1), (1 << 24) / LANES_OF_ONE),
        (lambda x: x.relu() @ x, 0.0),
    ],
)
def test_the_longest_sum_is_found(operation: object, serial: float) -> None:
    x = torch.empty(16, 64, 128, 128, device="meta")
    with LongestSum() as longest:
        operation(x)  # type: ignore[operator]
    assert longest.serial == pytest.approx(serial)
