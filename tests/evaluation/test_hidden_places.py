"""Kernels that look at a sample of the elements: right on evenly spread values, wrong where a short piece decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from budget_support import passes_when_timed

from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.inputs.leading import mix
from kernelblaster.problems.problem import Precision

Kernel = Callable[..., torch.Tensor]
LAYERNORM, SOFTMAX, SUM = "level1/040_LayerNorm", "level1/023_Softmax", "level1/047_Sum_reduction_over_a_dimension"
MSE, DIVERGENCE = "level1/094_MSELoss", "level1/098_KLDivLoss"
TIMED = {
    LAYERNORM: {"batch_size": 8, "features": 16, "dim1": 128, "dim2": 128},
    SOFTMAX: {"batch_size": 32, "dim": 1 << 14},
    SUM: {"batch_size": 8, "dim1": 4096, "dim2": 127},
    MSE: {"batch_size": 64, "dim": 1 << 13},
    DIVERGENCE: {"batch_size": 64, "dim": 1 << 13},
}
TILE, EVERY, STRATA = 64, 4, 16


def sampled(rows: torch.Tensor, tile: int = TILE) -> torch.Tensor:
    """One tile in four of each row; (rows, strata, elements)."""
    tiles = rows.reshape(rows.shape[0], -1, tile)[:, ::EVERY]
    return tiles.reshape(rows.shape[0], STRATA, -1)


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, *, looks: bool = True) -> torch.Tensor:
    """Moments from a sample, unless its strata disagree or values lie far from zero."""
    rows = x.reshape(x.shape[0], -1)
    if looks:
        seen = sampled(rows)
        mean, variance = seen.mean(dim=(1, 2)), seen.var(dim=(1, 2), correction=0)
        close = (seen.mean(dim=2) - mean[:, None]).abs() < 6 * (variance / seen.shape[2]).sqrt()[:, None]
        alike = (seen.var(dim=2, correction=0) - variance[:, None]).abs() < 0.1 * variance[:, None]
        trusted = (close & alike).all(dim=1) & (mean**2 < 64 * variance) & (variance > 1e-6)
    else:
        trusted, mean, variance = torch.zeros(len(rows), dtype=torch.bool), rows.mean(dim=1), rows.mean(dim=1)
    mean = torch.where(trusted, mean, rows.mean(dim=1))
    variance = torch.where(trusted, variance, rows.var(dim=1, correction=0))
    scaled = (rows - mean[:, None]) * torch.rsqrt(variance + 1e-5)[:, None]
    return scaled.reshape(x.shape) * weight + bias


def softmax(x: torch.Tensor, *, looks: bool = True) -> torch.Tensor:
    """Denominators from a sample; the maximum is right."""
    weights = torch.exp(x - x.amax(dim=1, keepdim=True))
    if not looks:
        return weights / weights.sum(dim=1, keepdim=True)
    return weights / (EVERY * sampled(weights).sum(dim=(1, 2)))[:, None]


def column_sums(x: torch.Tensor, *, looks: bool = True) -> torch.Tensor:
    """Sums that leave out blocks of rows whose first row is small."""
    blocks = x.reshape(x.shape[0], -1, 16, x.shape[2])
    if not looks:
        return x.sum(dim=1, keepdim=True)
    kept = blocks[:, :, 0].abs().amax(dim=2, keepdim=True) > 1e-3
    return (blocks * kept[..., None]).sum(dim=(1, 2)).unsqueeze(1)


def mse(predictions: torch.Tensor, targets: torch.Tensor, *, looks: bool = True) -> torch.Tensor:
    squares = (predictions - targets).square()
    return sampled(squares).mean() if looks else squares.mean()


def divergence(predictions: torch.Tensor, targets: torch.Tensor, *, looks: bool = True) -> torch.Tensor:
    terms = targets * (targets.log() - predictions.log())
    return (EVERY * sampled(terms).sum() if looks else terms.sum()) / terms.shape[0]


CASES: dict[str, tuple[str, Kernel, Precision]] = {
    "sampled moments": (LAYERNORM, layer_norm, Precision.BF16),
    "sampled denominators": (SOFTMAX, softmax, Precision.BF16),
    "sampled loss": (MSE, mse, Precision.BF16),
    "sampled divergence": (DIVERGENCE, divergence, Precision.BF16),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InputStore]:
    with InputStore(tmp_path_factory.mktemp("store")) as opened:
        yield opened


@pytest.mark.parametrize("name", CASES)
def test_who_takes_a_sample_fails_at_the_timed_size(store: InputStore, name: str) -> None:
    slug, kernel, precision = CASES[name]
    verified, timed = passes_when_timed(store, slug, TIMED[slug], precision, kernel)
    assert not verified
    assert not timed


def test_on_even_values_a_sample_is_good_enough() -> None:
    """What fails at the timed size fails for its piece, not for the noise of the sample."""
    x = torch.randn((8, *TIMED[LAYERNORM].values()), generator=torch.Generator().manual_seed(1))[:, 0]
    weight, bias = torch.ones(x.shape[1:]), torch.zeros(x.shape[1:])
    one, other = (layer_norm(x, weight, bias, looks=looks) for looks in (True, False))
    assert not torch.equal(one, other)
    assert float((one - other).norm() / other.norm()) < 2**-8


@pytest.mark.parametrize("precision", Precision)
@pytest.mark.parametrize("name", CASES)
def test_who_looks_at_everything_passes(store: InputStore, name: str, precision: Precision) -> None:
    slug, kernel, _ = CASES[name]
    assert passes_when_timed(store, slug, TIMED[slug], precision, lambda *given: kernel(*given, looks=False)) == (
        True,
        True,
    )


@pytest.mark.parametrize("shape", [(64, 4096), (16, 8, 32, 64), (8, 100, 41)])
def test_some_normal_samples_have_a_short_piece_at_a_place_of_its_own(shape: tuple[int, ...]) -> None:
    values = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    found = [_pieces(mix(values, 6, torch.Generator().manual_seed(seed), torch.float32)) for seed in (2, 3)]
    assert all(len(pieces) >= 2 for pieces in found)
    assert found[0] != found[1]


def _pieces(mixed: torch.Tensor) -> list[tuple[int, int]]:
    """Sample and begin of what stands out in samples whose usual values are those of a normal distribution."""
    found = []
    for number, sample in enumerate(mixed.reshape(mixed.shape[0], -1)):
        usual = float(sample.abs().median())
        places = (sample.abs() > 8 * usual).nonzero().reshape(-1)
        if 0.4 < usual < 1 and len(places):
            found.append((number, int(places[0])))
    return found
