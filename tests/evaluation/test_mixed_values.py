"""At the timed size one tensor holds samples of most distributions: wrong kernels fail there, honest ones pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from budget_support import passes_when_timed
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.inputs.drawing import density
from kernelblaster.evaluation.inputs.leading import distances, mix
from kernelblaster.problems.problem import Precision

Kernel = Callable[..., torch.Tensor]
SOFTMAX, LOGSOFTMAX, LAYERNORM = "level1/023_Softmax", "level1/024_LogSoftmax", "level1/040_LayerNorm"
RMSNORM, MATMUL = "level1/036_RMSNorm", "level1/001_Square_matrix_multiplication"
TIMED = {
    SOFTMAX: {"batch_size": 32, "dim": 4096},
    LOGSOFTMAX: {"batch_size": 32, "dim": 4096},
    LAYERNORM: {"batch_size": 16, "features": 8, "dim1": 32, "dim2": 64},
    RMSNORM: {"batch_size": 16, "features": 16, "dim1": 16, "dim2": 64},
    MATMUL: {"n": 192},
}


def softmax(x: torch.Tensor, *, looked_at: int = 4096) -> torch.Tensor:
    top = x[:, :looked_at].amax(dim=1, keepdim=True) if looked_at else 0.0
    weights = torch.exp(x - top)
    return weights / weights.sum(dim=1, keepdim=True)


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, *, one_pass: bool = False) -> torch.Tensor:
    rows = x.reshape(x.shape[0], -1)
    mean = rows.mean(dim=1, keepdim=True)
    squares = rows.square() if one_pass else (rows - mean).square()
    variance = squares.mean(dim=1, keepdim=True) - (mean**2 if one_pass else 0)
    return ((rows - mean) * torch.rsqrt(variance.clamp(min=0) + 1e-5)).reshape(x.shape) * weight + bias


def rms_norm(x: torch.Tensor, *, eps: float = 1e-5) -> torch.Tensor:
    return x * torch.rsqrt(x.square().mean(dim=1, keepdim=True) + eps)


def coarse_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.to(torch.float16).float() @ b.to(torch.float16).float()


def softmax_from(start: float, x: torch.Tensor) -> torch.Tensor:
    """A running maximum that begins at a number; blocks of 64 columns, as an online softmax has them."""
    top, total = torch.full(x.shape[:1], start), torch.zeros(x.shape[0])
    for block in x.split(64, dim=1):
        higher = torch.maximum(top, block.amax(dim=1))
        total = total * torch.exp(top - higher) + torch.exp(block - higher[:, None]).sum(dim=1)
        top = higher
    return torch.exp(x - top[:, None]) / total[:, None]


def log_softmax(x: torch.Tensor, *, looks: bool = True) -> torch.Tensor:
    top = x.amax(dim=1, keepdim=True) if looks else 0.0
    return x - top - torch.exp(x - top).sum(dim=1, keepdim=True).log()


def max_pool(x: torch.Tensor, *, padding: float = -torch.inf) -> torch.Tensor:
    padded = torch.nn.functional.pad(x, (1, 1, 1, 1), value=padding)
    windows = padded.unfold(2, 4, 1).unfold(3, 4, 1)
    return windows.amax(dim=(4, 5))


RIGHT_ENOUGH_IN_BF16 = "layer norm in one pass"
"""In rows this short torch's sums lose less than the format does."""
CASES: dict[str, tuple[str, Kernel, bool]] = {
    "softmax": (SOFTMAX, softmax, True),
    "softmax without maximum": (SOFTMAX, lambda x: softmax(x, looked_at=0), False),
    "softmax of a guessed maximum": (SOFTMAX, lambda x: softmax(x, looked_at=64), False),
    "softmax online": (SOFTMAX, lambda x: softmax_from(-3e38, x), True),
    "softmax of a maximum from -10000 on": (SOFTMAX, lambda x: softmax_from(-1e4, x), False),
    "softmax that is lost where rows begin masked": (SOFTMAX, lambda x: softmax_from(-torch.inf, x), False),
    "log softmax": (LOGSOFTMAX, log_softmax, True),
    "log softmax without maximum": (LOGSOFTMAX, lambda x: log_softmax(x, looks=False), False),
    "layer norm in two passes": (LAYERNORM, layer_norm, True),
    "layer norm in one pass": (LAYERNORM, lambda x, w, b: layer_norm(x, w, b, one_pass=True), False),
    "rms norm": (RMSNORM, rms_norm, True),
    "rms norm without epsilon": (RMSNORM, lambda x: rms_norm(x, eps=0.0), False),
    "product": (MATMUL, torch.matmul, True),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InputStore]:
    with InputStore(tmp_path_factory.mktemp("store")) as opened:
        yield opened


@pytest.mark.parametrize(
    ("name", "precision"),
    [(name, p) for name in CASES for p in Precision if (name, p) != (RIGHT_ENOUGH_IN_BF16, Precision.BF16)],
)
def test_wrong_kernels_fail_at_the_timed_size(
    store: InputStore, tmp_path: Path, name: str, precision: Precision
) -> None:
    slug, kernel, right = CASES[name]
    verified, timed = passes_when_timed(store, slug, TIMED[slug], precision, kernel)
    assert verified is right
    assert timed or not right


def test_normal_samples_are_judged_as_strictly_as_ever(store: InputStore, tmp_path: Path) -> None:
    """Far and large ones have a budget of their own."""
    assert passes_when_timed(store, MATMUL, TIMED[MATMUL], Precision.FP32, coarse_product) == (False, False)


@given(st.integers(2, 70), st.integers(0, 1000), st.sampled_from([torch.float16, torch.float32]))
@settings(max_examples=30, deadline=None)
def test_a_mixture_keeps_shape_and_hardly_any_zeros(samples: int, seed: int, stored: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn((samples, 3, 50), generator=generator)
    mixed = mix(values, 6, generator, stored).to(stored)
    assert mixed.shape == values.shape
    assert mixed.isfinite().all()
    assert density(mixed) > 0.9
    far = distances(mixed.float()) > 16
    assert 0 < int(far.sum()) < samples


def test_the_same_seed_gives_the_same_mixture() -> None:
    values = torch.randn(40, 100)
    one, other = (mix(values, 6, torch.Generator().manual_seed(4), torch.float32) for _ in range(2))
    assert torch.equal(one, other)


@settings(deadline=None, max_examples=60)
@given(
    samples=st.integers(5, 9),
    sample=st.lists(st.integers(1, 40), min_size=1, max_size=3),
    masks=st.sampled_from([None, 1]),
    seed=st.integers(0, 2**40),
)
def test_of_few_samples_some_lines_of_one_are_below_zero_whole(
    samples: int, sample: list[int], masks: int | None, seed: int
) -> None:
    """Maxima that begin with zero show there, along whichever axis they are taken."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(samples, *sample, generator=generator)
    mixed = mix(values, 6, generator, torch.float32, masks)
    for axis in range(1, mixed.ndim):
        if mixed.shape[axis] > 1:
            assert (mixed.amax(dim=axis) < 0).any()
