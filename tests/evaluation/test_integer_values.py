"""Integers in declared bounds: every distribution stays in them, keeps type and shape, and is what its name says."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelblaster.evaluation.inputs.distributions import Distribution
from kernelblaster.evaluation.inputs.integers import rearranged, transform_integers
from kernelblaster.problems.problem import ValueRange

BYTE = ValueRange(0, 255)


def drawn(bounds: ValueRange, shape: tuple[int, ...], dtype: torch.dtype = torch.int64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randint(bounds.low, bounds.high + 1, shape, generator=generator).to(dtype)


def derived(tensor: torch.Tensor, bounds: ValueRange, distribution: Distribution) -> torch.Tensor:
    return transform_integers(tensor, bounds, distribution, torch.Generator().manual_seed(4))


@given(st.sampled_from(Distribution), st.integers(-(2**31), 2**31 - 2), st.integers(1, 2**31), st.integers(1, 300))
@settings(max_examples=80, deadline=None)
def test_all_values_stay_in_bounds(distribution: Distribution, low: int, width: int, count: int) -> None:
    bounds = ValueRange(low, min(low + width, 2**31 - 1))
    values = drawn(bounds, (count,), torch.int32)
    found = derived(values, bounds, distribution)
    assert found.dtype is values.dtype
    assert found.shape == values.shape
    assert int(found.min()) >= bounds.low
    assert int(found.max()) <= bounds.high


@pytest.mark.parametrize(
    ("distribution", "least", "most"),
    [(Distribution.SPARSE, 2, 60), (Distribution.COARSE, 5, 5), (Distribution.TINY, 5, 5), (Distribution.LARGE, 4, 4)],
)
def test_values_repeat_as_each_distribution_says(distribution: Distribution, least: int, most: int) -> None:
    found = derived(drawn(BYTE, (400,), torch.uint8), BYTE, distribution)
    assert least <= found.unique().numel() <= most


def test_rows_are_in_order_in_turns() -> None:
    found = derived(drawn(BYTE, (4, 90)), BYTE, Distribution.OFFSET)
    assert [bool((row.diff() >= 0).all()) for row in found] == [True, False, True, False]
    assert bool((found[1].diff() <= 0).all())


@pytest.mark.parametrize("bounds", [BYTE, ValueRange(0, 1)])
def test_a_mixture_has_a_long_run_of_one_value_and_is_drawn_elsewhere(bounds: ValueRange) -> None:
    values = drawn(bounds, (64, 128))
    found = derived(values, bounds, Distribution.MIXED)
    assert 0.7 <= float((found == values).double().mean()) <= 0.95
    around = torch.cat([found, found]).flatten()
    changes = (around.diff() != 0).nonzero().flatten()
    assert int(changes.diff().max()) >= found.numel() // 8
    kept = ((found == values).double().mean(dim=1) == 1).sum()
    assert int(kept) >= 40


def test_flags_stand_in_long_runs_where_rows_are_in_order() -> None:
    found = derived(drawn(ValueRange(0, 1), (4, 900)), ValueRange(0, 1), Distribution.OFFSET)
    assert all(int((row.diff() != 0).sum()) == 1 for row in found)


@given(st.integers(2, 400), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_without_bounds_a_mixture_has_the_same_values_a_piece_of_them_in_order(count: int, seed: int) -> None:
    values = drawn(BYTE, (count,))
    found = rearranged(values, torch.Generator().manual_seed(seed))
    assert torch.equal(found.sort().values, values.sort().values)
    runs = torch.cat([found, found]).unfold(0, max(count // 4, 1), 1)
    assert bool((runs.diff(dim=1) >= 0).all(dim=1).any())
