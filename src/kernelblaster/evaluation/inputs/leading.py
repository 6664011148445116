"""Values that only one input of a problem gets: the first whose samples (indices of its first axis) are the output's.

Others would meet in sums and products there: nothing would be left of what each is to show, and of infinities NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from kernelblaster.evaluation.inputs.distributions import MASKS
from kernelblaster.problems.problem import TensorRole, TensorSpec

_SCATTERED, _POSITIVE = 0.3, 0.25
_FAR_BELOW = -24_000.0
"""Within fp16, and below numbers that kernels begin a maximum with instead of -infinity."""
_ALL_FAR_BELOW = 6


def leading_input(specs: Sequence[TensorSpec]) -> str | None:
    """Name of the floating-point input whose samples are those of the first output; None when there is none.

    For a scalar output it is the first that has samples at all.
    """
    output = next(spec.shape for spec in specs if spec.role is TensorRole.OUTPUT)
    for spec in specs:
        if spec.role is not TensorRole.INPUT or not spec.dtype.is_floating_point or not spec.shape:
            continue
        if not output or (output[0] == spec.shape[0] and (len(spec.shape) > 1 or len(output) == 1)):
            return spec.name
    return None


def mask(values: torch.Tensor, how: int, generator: torch.Generator) -> torch.Tensor:
    """Put infinities in place of some values, as masks do.

    Of three rows along the last axis one begins masked, one is masked here and there, and every other third one is
    masked but for a few values, which then lie far below zero. At the least one row begins masked, and one lies far
    below zero.

    Args:
        values: float32.
        how: one of `MASKS`.
        generator: decides the places.
    """
    width = values.shape[-1] if values.ndim else 1
    rows = values.reshape(-1, width).clone()
    height = rows.shape[0]
    kind = torch.arange(height) % 6
    if how == 0:
        chosen = torch.randperm(height, generator=generator)
        kind = torch.full((height,), 5)
        kind[chosen[:1]], kind[chosen[1:2]] = 0, _ALL_FAR_BELOW
    column, chance = torch.arange(width), torch.rand(rows.shape, generator=generator)
    kept = torch.randint(width, (height, 1), generator=generator)
    kind = kind[:, None]
    begins = (kind % 3 == 0) & (column < kept)
    scattered = (kind % 3 == 1) & (chance < _SCATTERED) & (column != kept)
    nearly_all = (kind == 2) & (chance > 2 / width) & (column != kept)
    rows = torch.where((kind == 2) & ~nearly_all | (kind == _ALL_FAR_BELOW), rows + _FAR_BELOW, rows)
    rows = torch.where(begins | scattered | nearly_all, -torch.inf, rows)
    if how == MASKS[0]:
        rows = torch.where(scattered & (chance < _SCATTERED * _POSITIVE), torch.inf, rows)
    return rows.reshape(values.shape)
