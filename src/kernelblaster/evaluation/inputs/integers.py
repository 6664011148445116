"""Harder values of an integer input whose bounds a problem declares (`Problem.ranges`): what `drawing` is for numbers.

    sparse   nine of ten are one value: a histogram's one full bin, a sort's one long run
    large    the two bounds and their neighbours alone: comparisons and sums that overflow, signs that are forgotten
    coarse   few different values, all over the range: equal keys everywhere
    tiny     few different values in a row: digits that most keys share
    offset   rows that ascend and descend in turns

Every other distribution is the declared draw. All of them stay in bounds.
"""

from __future__ import annotations

import torch

from kernelblaster.evaluation.inputs.distributions import Distribution
from kernelblaster.problems.problem import ValueRange

_COMMON = 0.9
_FEW = 5
"""Different values of `coarse` and `tiny`."""


def transform_integers(
    tensor: torch.Tensor, bounds: ValueRange, distribution: Distribution, generator: torch.Generator
) -> torch.Tensor:
    """Derive a tensor of the wanted distribution from a declared one; its type and shape stay."""
    width = bounds.high - bounds.low
    if tensor.numel() < 2 or width < _FEW:
        return tensor
    values = tensor.long()
    match distribution:
        case Distribution.SPARSE:
            rare = torch.rand(values.shape, generator=generator, device=values.device) >= _COMMON
            values = torch.where(rare, values, values.reshape(-1)[0])
        case Distribution.LARGE:
            near = values % 2
            values = torch.where(values % 4 < 2, bounds.low + near, bounds.high - near)
        case Distribution.COARSE:
            values = bounds.low + (values - bounds.low) % _FEW * (width // (_FEW - 1))
        case Distribution.TINY:
            values = bounds.low + width // 2 + (values - bounds.low) % _FEW - _FEW // 2
        case Distribution.OFFSET:
            values = _in_order(values)
    return values.clamp(bounds.low, bounds.high).to(tensor.dtype)


def _in_order(values: torch.Tensor) -> torch.Tensor:
    """Rows along the last axis, sorted, every other one the other way round."""
    rows = values.reshape(-1, values.shape[-1]).sort(dim=-1).values
    rows[1::2] = rows[1::2].flip(-1)
    return rows.reshape(values.shape)
