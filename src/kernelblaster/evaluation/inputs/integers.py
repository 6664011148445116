"""Harder values of an integer input whose bounds a problem declares (`Problem.ranges`): what `drawing` is for numbers.

    sparse   nine of ten are one value: a histogram's one full bin, a sort's one long run
    large    the two bounds and their neighbours alone: comparisons and sums that overflow, signs that are forgotten
    coarse   few different values, all over the range: equal keys everywhere
    tiny     few different values in a row: digits that most keys share
    offset   rows that ascend and descend in turns
    mixed    the declared draw, but for three pieces at random places, together a quarter of it: one value throughout,
             values in order, and the bounds; of few values, the upper bound, values in order, and the lower bound

Every other distribution is the declared draw. All of them stay in bounds. Of a range of few values, such as flags,
those alone are made that say where values lie: long runs, and hardly any.

Where no bounds are declared nobody knows which other values are sound: beside a mixture a piece is sorted
(`rearranged`). Flags have the bounds `FLAGS`.
"""

from __future__ import annotations

import torch

from kernelblaster.evaluation.inputs.distributions import Distribution
from kernelblaster.problems.problem import ValueRange

FLAGS = ValueRange(0, 1)
"""Bounds of flags, which need not be declared."""
_COMMON = 0.9
_FEW = 5
"""Different values of `coarse` and `tiny`."""
_OF_PLACES = (Distribution.SPARSE, Distribution.OFFSET, Distribution.MIXED)
"""These need no more than two different values."""
_EQUAL, _ORDERED, _BOUNDS = 8, 16, 16
"""Which parts of a mixed tensor its pieces are: rooms for twice the usual number of equal keys are too small."""
_SORTED = 4
"""Which part of integers without bounds is sorted."""


def transform_integers(
    tensor: torch.Tensor, bounds: ValueRange, distribution: Distribution, generator: torch.Generator
) -> torch.Tensor:
    """Derive a tensor of the wanted distribution from a declared one; its type and shape stay."""
    width = bounds.high - bounds.low
    if tensor.numel() < 2 or (width < _FEW and distribution not in _OF_PLACES):
        return tensor
    values = tensor.long()
    match distribution:
        case Distribution.SPARSE:
            rare = torch.rand(values.shape, generator=generator, device=values.device) >= _COMMON
            values = torch.where(rare, values, values.reshape(-1)[0])
        case Distribution.LARGE:
            values = _near_bounds(values, bounds)
        case Distribution.COARSE:
            values = bounds.low + (values - bounds.low) % _FEW * (width // (_FEW - 1))
        case Distribution.TINY:
            values = bounds.low + width // 2 + (values - bounds.low) % _FEW - _FEW // 2
        case Distribution.OFFSET:
            values = _in_order(values)
        case Distribution.MIXED:
            values = _mixed(values, bounds, generator)
    return values.clamp(bounds.low, bounds.high).to(tensor.dtype)


def rearranged(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """The same values with a piece at a random place in order: long runs where values repeat."""
    count = tensor.numel()
    if count < 2:
        return tensor
    start = int(torch.randint(count, (), generator=generator, device=generator.device))
    flat, end = tensor.flatten().roll(-start), count // _SORTED
    flat[:end] = flat[:end].sort().values
    return flat.roll(start).reshape(tensor.shape)


def _in_order(values: torch.Tensor) -> torch.Tensor:
    """Rows along the last axis, sorted, every other one the other way round."""
    rows = values.reshape(-1, values.shape[-1]).sort(dim=-1).values
    rows[1::2] = rows[1::2].flip(-1)
    return rows.reshape(values.shape)


def _near_bounds(values: torch.Tensor, bounds: ValueRange) -> torch.Tensor:
    """The two bounds and their neighbours."""
    near = values % 2
    return torch.where(values % 4 < 2, bounds.low + near, bounds.high - near)


def _mixed(values: torch.Tensor, bounds: ValueRange, generator: torch.Generator) -> torch.Tensor:
    """The declared draw with three hard pieces in it, apart from each other, the first one at a random place."""
    flat = values.flatten().clone()
    count = flat.numel()
    start = int(torch.randint(count, (), generator=generator, device=generator.device))
    flat = flat.roll(-start)
    equal = count // _EQUAL
    ordered = equal + count // _ORDERED
    end = ordered + count // _BOUNDS
    few = bounds.high - bounds.low < _FEW
    flat[:equal] = bounds.high if few else flat[:1]
    flat[equal:ordered] = flat[equal:ordered].sort().values
    flat[ordered:end] = bounds.low if few else _near_bounds(flat[ordered:end], bounds)
    return flat.roll(start).reshape(values.shape)
