"""Hard values of the inputs beside the leading one of a mixture, and of all where none leads.

A kernel may take another operand for even: bounded, of one scale, without zeros. So each gets short pieces at random
places, as `leading.Burst` has them, a stretch of tiny values, and one that is zero but for a few elements. Every sample
of the output depends on all of such an operand: what is large in it would license errors everywhere. Therefore the
pieces together have half of the energy of the rest, and are lower where the operand is short. Of an output of one
number nothing else is left to license: there one piece is as large as what the leading input is made of, or nobody
would see what became of this one.
"""

from __future__ import annotations

from random import Random

import torch

from kernelblaster.evaluation.inputs.leading import Burst, burst, piece, rival, tiny_factor

_LEAST = 64
"""Elements below which a tensor has no place for stretches and pieces."""
_STRETCH = 1 / 16
_FEW = 1 / 16
_PIECES, _ENERGY = 6, 1 / 12
"""How many, and the energy of each in units of the tensor's."""
_LEAST_HEIGHT, _WIDEST = 2.0, 2.0


def accompany(
    values: torch.Tensor,
    exponent: int,
    generator: torch.Generator,
    places: Random,
    stored: torch.dtype,
    *,
    one_number: bool,
) -> torch.Tensor:
    """Make an input hard that does not lead; a tensor of its own, float32.

    Args:
        values: normal ones, float32.
        exponent: of the mixture beside it.
        generator: decides which elements stay of a stretch that is nearly zero.
        places: decides where stretches and pieces lie.
        stored: type that they will be stored in.
        one_number: whether the output is one.
    """
    if values.numel() < _LEAST:
        return values
    hard = values.clone(memory_format=torch.contiguous_format)
    flat, given, factor = hard.view(-1), values.reshape(-1), 2.0**exponent
    count, spread = flat.numel(), float(values.std(correction=0))
    start, stop = piece(count, _STRETCH * count, places)
    flat[start:stop] *= tiny_factor(stored)
    start, stop = piece(count, _STRETCH * count, places)
    flat[start:stop] *= torch.rand(stop - start, generator=generator, device=flat.device) < _FEW
    most = min(_WIDEST * factor, (_ENERGY * count) ** 0.5)
    for number in range(_PIECES if most > _LEAST_HEIGHT else 0):
        height = most * (_LEAST_HEIGHT / most) ** max(places.uniform(-2.0, 1.0), 0.0)
        start, stop = piece(count, _ENERGY * count / height**2, places)
        match Burst(number % Burst.NOWHERE):
            case Burst.SCALED:
                flat[start:stop] = height * given[start:stop]
            case Burst.SHIFTED:
                flat[start:stop] = given[start:stop] + spread * (height if start % 2 else -height)
            case Burst.ELEMENT:
                flat[start] = spread * most
    if one_number:
        burst(hard, values, *rival(factor, count, places), places)
    limit = float(torch.finfo(stored).max)
    return hard.clamp_(-limit, limit)
