"""Inputs beside the leading one are hard, too: short pieces of bounded energy, tiny stretches, hardly any zeros."""

from __future__ import annotations

import pytest
import torch
from budget_support import passes_when_timed
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelblaster.devices.base import PerturbationKind
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.inputs.companions import accompany
from kernelblaster.evaluation.inputs.drawing import density, perturbation_of
from kernelblaster.evaluation.inputs.leading import places_of
from kernelblaster.problems.problem import Precision

MATMUL, TRANSPOSED = "level1/001_Square_matrix_multiplication", "level1/016_Matmul_with_transposed_A"
MATVEC, LOSS, NORM = (
    "level1/004_Matrix_vector_multiplication",
    "level1/096_HuberLoss",
    "level2/075_Gemm_GroupNorm_Min_BiasAdd",
)
TIMED = {
    MATMUL: {"n": 192},
    TRANSPOSED: {"m": 96, "k": 320, "n": 160},
    MATVEC: {"m": 64, "k": 9000},
    LOSS: {"batch_size": 32, "dim": 4096},
    NORM: {"batch_size": 32, "in_features": 1024, "out_features": 256, "num_groups": 32},
}


def hard(shape: tuple[int, ...], seed: int, stored: torch.dtype, *, one_number: bool = False) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(shape, generator=generator)
    return accompany(values, 6, generator, places_of(generator), stored, one_number=one_number)


@given(
    st.sampled_from([(3,), (70,), (9000,), (40, 90), (3, 7, 64, 11)]),
    st.integers(0, 1000),
    st.sampled_from([torch.float16, torch.bfloat16, torch.float32]),
)
@settings(max_examples=60, deadline=None)
def test_a_companion_has_bounded_energy_and_may_be_perturbed_as_before(
    shape: tuple[int, ...], seed: int, stored: torch.dtype
) -> None:
    values = hard(shape, seed, stored)
    assert values.shape == shape
    kept = values.to(stored)
    assert kept.isfinite().all()
    assert density(kept) > 0.9
    assert values.square().mean() < 4, "one piece of six, each a twelfth, may consist of the largest values"
    if values.numel() > 16:
        assert perturbation_of(kept) is PerturbationKind.SHIFT


@given(st.integers(0, 1000))
@settings(max_examples=8, deadline=None)
def test_a_long_companion_has_outliers_tiny_values_and_a_stretch_of_zeros(seed: int) -> None:
    values = hard((200_000,), seed, torch.float32)
    assert values.abs().max() > 64
    assert (values.abs() < 1e-4).double().mean() > 1 / 16
    zeros = (values == 0).int()
    assert int(zeros.unfold(0, 256, 256).sum(dim=1).max()) > 200


def test_beside_an_output_of_one_number_a_companion_outweighs_what_leads() -> None:
    values = hard((64, 4096), 3, torch.float32, one_number=True)
    assert float(values.square().mean()) > 64


def clamped_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b.clamp(-8, 8)


def halves(values: torch.Tensor) -> torch.Tensor:
    """Two halves of 11 bits each, as tensor cores take them; small values have no second one."""
    high = values.half()
    return high.float() + (values - high.float()).half().float()


def skipping_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    runs = b[: b.shape[0] // 32 * 32].reshape(-1, 32)
    skipped = (runs[:, 0] == 0) & (runs[:, -1] == 0)
    kept = torch.where(skipped[:, None], 0.0, runs).reshape(-1, 1)
    return a @ torch.cat([kept, b[len(kept) :]])


def huber(predictions: torch.Tensor, targets: torch.Tensor, *, most: float = torch.inf) -> torch.Tensor:
    return torch.nn.functional.smooth_l1_loss(predictions, targets.clamp(-most, most))


def norm_of_product(
    x: torch.Tensor,
    bias: torch.Tensor,
    weight: torch.Tensor,
    shift: torch.Tensor,
    scales: torch.Tensor,
    shifts: torch.Tensor,
    *,
    eps: float = 1e-5,
) -> torch.Tensor:
    product = torch.nn.functional.linear(x, weight, shift)
    normal = torch.nn.functional.group_norm(product, TIMED[NORM]["num_groups"], scales, shifts, eps)
    return normal.amin(dim=1)[None, None, :, None] + bias


@pytest.mark.parametrize(
    ("slug", "right", "wrong"),
    [
        pytest.param(MATMUL, torch.matmul, clamped_product, id="a second operand within bounds"),
        pytest.param(TRANSPOSED, lambda a, b: a.T @ b, lambda a, b: halves(a).T @ halves(b), id="halves of numbers"),
        pytest.param(MATVEC, torch.matmul, skipping_product, id="runs between two zeros"),
        pytest.param(LOSS, huber, lambda p, t: huber(p, t, most=8.0), id="targets within bounds"),
        pytest.param(NORM, norm_of_product, lambda *given: norm_of_product(*given, eps=0.0), id="no epsilon"),
    ],
)
def test_who_takes_another_operand_for_even_fails_when_timed(store: InputStore, slug, right, wrong) -> None:
    assert passes_when_timed(store, slug, TIMED[slug], Precision.FP32, right) == (True, True)
    assert not passes_when_timed(store, slug, TIMED[slug], Precision.FP32, wrong)[0]
