"""Infinite inputs are judged where a problem defines what becomes of them, and honest kernels pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from budget_support import Jury, problem, reduced, tensors
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.inputs.distributions import MASKS, Distribution, attempts
from kernelblaster.evaluation.inputs.keys import InputKey
from kernelblaster.evaluation.inputs.leading import leading_input, mask
from kernelblaster.problems.problem import Precision, StandardWorkload
from kernelblaster.problems.reference import tensor_specs

RELU, GELU, SOFTMAX = "level1/019_ReLU", "level1/026_GELU", "level1/023_Softmax"
POOL, DIAGONAL, LOSS = (
    "level1/042_Max_Pooling_2D",
    "level1/012_Matmul_with_diagonal_matrices",
    "level1/095_CrossEntropyLoss",
)
LOG_SUM_EXP = "level2/058_ConvTranspose3d_LogSumExp_HardSwish_Subtract_Clamp"
DEFINED = (RELU, GELU, SOFTMAX, POOL, DIAGONAL)
UNDEFINED = (
    "level1/001_Square_matrix_multiplication",
    "level1/036_RMSNorm",
    "level1/040_LayerNorm",
    "level1/047_Sum_reduction_over_a_dimension",
    "level1/089_cumsum",
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InputStore]:
    with InputStore(tmp_path_factory.mktemp("store")) as opened:
        yield opened


@pytest.fixture
def jury(store: InputStore, tmp_path: Path) -> Jury:
    return Jury(store, tmp_path)


def drawn_as(store: InputStore, slug: str, precision: Precision, seed: int = 7) -> Distribution:
    root = store.directory.parent / "reduced"
    key = InputKey(reduced(slug, root), precision, StandardWorkload.SMALL, attempts(Distribution.MASKED), seed)
    with store.use(key) as drawn:
        infinite = any(bool(tensor.isinf().any()) for tensor in tensors(drawn) if tensor.is_floating_point())
        assert infinite == (drawn.distribution is Distribution.MASKED)
        return drawn.distribution


@pytest.mark.parametrize("precision", Precision)
@pytest.mark.parametrize("slug", [*DEFINED, *UNDEFINED])
def test_infinities_are_drawn_where_they_are_defined(store: InputStore, slug: str, precision: Precision) -> None:
    assert drawn_as(store, slug, precision) is (Distribution.MASKED if slug in DEFINED else Distribution.DECLARED)


def test_values_that_vanish_in_float32_do_not_hide_a_definition(store: InputStore) -> None:
    key = InputKey(problem(SOFTMAX), Precision.BF16, StandardWorkload.SMALL, attempts(Distribution.MASKED), seed=3)
    with store.use(key) as drawn:
        assert drawn.distribution is Distribution.MASKED


def test_a_loss_is_judged_where_no_target_is_masked(store: InputStore) -> None:
    drawn = {drawn_as(store, LOSS, Precision.FP32, seed) for seed in range(1, 9)}
    assert drawn == {Distribution.MASKED, Distribution.DECLARED}


def test_an_infinite_log_sum_exp_is_not_asked_for(store: InputStore) -> None:
    """By this seed sums of its channels are infinite, and none is NaN: a kernel that subtracts the maximum has NaN."""
    assert drawn_as(store, LOG_SUM_EXP, Precision.BF16, seed=20) is Distribution.DECLARED


def online_softmax(start: float, *, guarded: bool) -> Callable[[torch.Tensor], torch.Tensor]:
    def kernel(x: torch.Tensor) -> torch.Tensor:
        top, total = torch.full(x.shape[:1], start), torch.zeros(x.shape[0])
        for column in x.T:
            higher = torch.maximum(top, column)
            shifted = torch.exp(top - higher)
            total = total * (torch.where(total == 0, 0.0, shifted) if guarded else shifted)
            if guarded:
                total = torch.nan_to_num(total)
            term = torch.exp(column - higher)
            total = total + (torch.where(column == -torch.inf, 0.0, term) if guarded else term)
            top = higher
        return torch.exp(x - top[:, None]) / total[:, None]

    return kernel


@pytest.mark.parametrize("precision", Precision)
def test_softmax_of_masked_rows(jury: Jury, precision: Precision) -> None:
    def judged(kernel: Callable[[torch.Tensor], torch.Tensor]) -> bool:
        return jury.judge(SOFTMAX, precision, Distribution.MASKED, kernel).passed

    assert judged(lambda x: torch.softmax(x, dim=1))
    assert judged(online_softmax(-torch.inf, guarded=True))
    assert judged(online_softmax(-3e38, guarded=False))
    assert not judged(online_softmax(-torch.inf, guarded=False))
    assert not judged(online_softmax(-1e4, guarded=False))


@pytest.mark.parametrize("precision", Precision)
def test_where_the_reference_gives_nan_the_limit_passes(jury: Jury, precision: Precision) -> None:
    def gelu(x: torch.Tensor) -> torch.Tensor:
        return 0.5 * x * (1 + torch.erf(x * 0.5**0.5))

    for kernel in (gelu, lambda x: torch.where(x < -20, 0.0, gelu(x))):
        assert jury.judge(GELU, precision, Distribution.MASKED, kernel).passed


def test_infinities_must_come_out_as_such(jury: Jury) -> None:
    def relu(x: torch.Tensor) -> torch.Tensor:
        return x.clamp(0, 65504)

    assert not jury.judge(RELU, Precision.FP16, Distribution.MASKED, relu).passed
    assert jury.judge(RELU, Precision.FP16, Distribution.MASKED, torch.relu).passed


@given(st.lists(st.integers(1, 9), max_size=3).map(tuple), st.sampled_from(MASKS), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_no_row_is_all_masked(shape: tuple[int, ...], how: int, seed: int) -> None:
    values = mask(torch.zeros(shape), how, torch.Generator().manual_seed(seed), torch.float16)
    assert values.shape == shape
    assert not values.isnan().any()
    assert values.isfinite().reshape(-1, shape[-1] if shape else 1).any(dim=1).all()


@pytest.mark.parametrize(
    ("slug", "name", "axis"),
    [
        (RELU, "x", 0),
        (DIAGONAL, "B", 0),
        (LOSS, "predictions", 0),
        ("level1/016_Matmul_with_transposed_A", "A", 1),
        ("level1/018_Matmul_with_transposed_both", "A", 1),
        ("level2/075_Gemm_GroupNorm_Min_BiasAdd", "x", 0),
    ],
)
def test_the_leading_input_has_the_samples_of_the_output(slug: str, name: str, axis: int) -> None:
    leading = leading_input(tensor_specs(problem(slug), StandardWorkload.SMALL, Precision.FP16))
    assert leading is not None
    assert (leading.name, leading.axis) == (name, axis)
