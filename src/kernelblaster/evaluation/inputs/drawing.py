"""How input values are drawn: what a problem declares, and harder values derived from the same draw.

On whatever device the declared tensor and the generator are: places and ramps are made there, too.

Every derived distribution is a map of the declared tensor's own values, element by element, and zero maps to zero.
So what the problem promises about its inputs survives: triangles stay triangular, symmetric matrices symmetric, and
tensors of a few distinct values (labels, masks, signs) are left as they are. Only a tensor without such structure is
also given a gain per position or mirrored halves.

What each is for: `normal` is signed, so it tells ReLU from the identity and TF32 from fp32 (errors of positive sums
average out), and its gain makes any half of an axis differ from the other, so that sampling instead of reducing shows.
`large` and `tiny` meet overflow, underflow and forgotten epsilons; `cancelling` sums to nearly nothing; `negative`
meets branches that positive values never take. Two mix several structures, one per sample (index of the first axis):

    offset   samples far from zero, positive and negative, ascending and descending along the last axis: variances
             computed as a mean of squares minus a squared mean, means kept in 16 bits, running maxima that are never
             (or always) replaced
    sparse   zeros, but for the first and last elements of each 32 along the last axis; but for one at random, far
             above the rest of its row; but for a few at random; nothing at all: elements at the borders of tiles that
             others average away, divisions by zero, work left out where some values are zero

`levels` are channels (indices of the second axis of three or more), each around a level of its own in all samples, the
first around the lowest one: who shifts by the mean of one channel cancels nothing in the others. Without channels they
are `offset`.

`masked` is `normal` with infinities (`leading.mask`), where a problem defines what becomes of them. `mixed` has several
of these in one tensor, masked samples among them, each in samples of its own, and short pieces at random places that
decide sums and moments (`leading.mix`): it is what the timed size gets. The other inputs have such pieces as well
(`companions`). Where values must keep their sign that is `burst`: what is declared, but for one such piece.

`coarse` stands in for `large` where layers follow each other: inputs and weights are -1, 0 or 1 times a power of two.
Sums of them are exact in any format and order, so that even a softmax of large, widely spread results is known to its
last digit; a maximum over part of a row overflows, and equal values are frequent.
"""

from __future__ import annotations

import math

import torch

from kernelblaster.devices.base import PerturbationKind
from kernelblaster.evaluation.inputs.distributions import FAR_FROM_ZERO, Distribution
from kernelblaster.problems.problem import Problem

CATEGORIES = 16
"""A tensor with at most this many distinct values is a label, a mask or a sign, not a measurement."""
_LOOKED_AT = 4096
_CORNER = 16
_GAIN = 0.25
_RESIDUE = 0.125
"""What remains of a cancelling pair, as a share of its members."""
_SMALL = 0.5
"""Of the mean magnitude: about a third of normal values lie below."""
_TILE = 32
_OF_SAMPLES = (Distribution.MASKED, Distribution.MIXED)
"""Normal but for one input, see `leading`."""
_LEAST_VECTOR, _PEAK = 32, 256.0
"""The exponential of half the peak overflows fp32."""


def transform(
    tensor: torch.Tensor, distribution: Distribution, exponent: int, generator: torch.Generator
) -> torch.Tensor:
    """Derive a float32 tensor of the wanted distribution from a declared one of any floating-point type.

    Args:
        tensor: as `get_inputs` drew it.
        distribution: which values are wanted.
        exponent: the result is scaled by 2 to this power.
        generator: decides places, where a distribution has some.
    """
    values = tensor.float()
    if distribution in (Distribution.DECLARED, Distribution.BURST) or _categorical(values):
        return values
    if distribution is Distribution.NEGATIVE:
        return values.abs().neg_()
    structured = _structured(values)
    # A tensor may have billions of elements: from here on `spread` is nobody else's and changes in place.
    spread = _signed(values, structured=structured)
    scale = 1.0 if distribution in (*FAR_FROM_ZERO, *_OF_SAMPLES) else 2.0**exponent
    if distribution is Distribution.COARSE:
        return coarse(spread).mul_(scale)
    if scale != 1:
        spread.mul_(scale)
    if structured:
        return spread
    if distribution is Distribution.LEVELS and spread.ndim > 2:
        return _levels(spread, 2.0**exponent, generator)
    if distribution in FAR_FROM_ZERO:
        return _offset(spread, 2.0**exponent)
    if distribution is Distribution.SPARSE:
        return _sparse(spread, generator)
    if distribution is Distribution.CANCELLING:
        return _mirrored(spread)
    if distribution is Distribution.NORMAL or distribution in _OF_SAMPLES:
        return _with_gain(spread)
    return spread


def randomize_constants(weight: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Replace a weight that is one constant (a scale of ones, a shift of zeros) by values around it.

    Otherwise a kernel that ignores the weight would be right. Constants other than 0 keep their sign.
    """
    values = weight.float()
    if values.numel() < 2 or not bool((values == values.reshape(-1)[0]).all()):
        return values
    noise = torch.rand(values.shape, generator=generator, device=generator.device) - 0.5
    return values * (1 + noise) if float(values.reshape(-1)[0]) else noise


def coarse(values: torch.Tensor) -> torch.Tensor:
    """The sign of values that are not small beside the others, else zero."""
    return values.sign() * (values.abs() > _SMALL * values.abs().mean())


def add_outlier(weights: dict[str, torch.Tensor], distribution: Distribution) -> None:
    """Raise one element of the last long vector among weights, the last layer's bias, far above the others.

    The first with negative inputs, the last with sparse ones: outliers in rows of results that inputs alone could not
    make. Biases of earlier layers are left alone: what follows would lose its digits to them.
    """
    vectors = [weight for weight in weights.values() if weight.ndim == 1 and weight.numel() >= _LEAST_VECTOR]
    places = {Distribution.NEGATIVE: 0, Distribution.SPARSE: -1}
    if vectors and distribution in places and vectors[-1].is_floating_point():
        vectors[-1][places[distribution]] += _PEAK


def permitted_perturbation(problem: Problem, name: str, tensor: torch.Tensor) -> PerturbationKind:
    """What may be done to an input or weight between two timed calls: by declaration, else by its values."""
    if name in problem.kept:
        return PerturbationKind.SCALE if tensor.is_floating_point() else PerturbationKind.FIXED
    return PerturbationKind.MIRROR if name in problem.ranges else perturbation_of(tensor)


def perturbation_of(tensor: torch.Tensor) -> PerturbationKind:
    """What its values allow, so that it keeps its meaning."""
    if tensor.numel() < 2:
        return PerturbationKind.FIXED
    if not tensor.is_floating_point():
        return PerturbationKind.FIXED if _ordered(tensor) else PerturbationKind.ROTATE
    values = tensor.float()
    if _categorical(values):
        return PerturbationKind.FIXED
    return PerturbationKind.SCALE if _structured(values) else PerturbationKind.SHIFT


def _ordered(values: torch.Tensor) -> bool:
    """Whether every row ascends, or every row descends: offsets, positions, masks of a triangle or of lengths."""
    if values.shape[-1] < 2:
        return values.ndim < 2 or _ordered(values.reshape(-1))
    steps = values.to(torch.int64).diff(dim=-1)
    return bool((steps >= 0).all()) or bool((steps <= 0).all())


def density(tensor: torch.Tensor) -> float:
    """Share of elements that are not zero."""
    return int(torch.count_nonzero(tensor)) / tensor.numel() if tensor.numel() else 1.0


def _signed(values: torch.Tensor, *, structured: bool) -> torch.Tensor:
    """Standard normal values in place of uniform ones; anything else is centred. A tensor of its own."""
    low, high = (float(bound) for bound in torch.aminmax(values))
    if low >= 0 and 0.5 < high <= 1:
        normal = values.clamp(1e-6, 1 - 1e-6).mul_(2).sub_(1).erfinv_().mul_(math.sqrt(2))
        return normal.masked_fill_(values == 0, 0.0) if structured else normal
    return values.clone() if structured else values - values.mean()


def _categorical(values: torch.Tensor) -> bool:
    some = values.reshape(-1)[:_LOOKED_AT]
    return some.numel() > 2 * CATEGORIES and some.unique().numel() <= CATEGORIES


def _structured(values: torch.Tensor) -> bool:
    """Whether positions mean something: many zeros, or a symmetric matrix."""
    if density(values) < 0.9:
        return True
    if values.ndim < 2 or values.shape[-1] != values.shape[-2]:
        return False
    corner = values[..., :_CORNER, :_CORNER]  # most matrices that are not symmetric are not here
    return all(torch.equal(square, square.transpose(-1, -2)) for square in (corner, values))


def _mirrored(values: torch.Tensor) -> torch.Tensor:
    """Make the second half of the longest axis after the first the negative of the first half, but for a residue.

    In place.
    """
    axis = max(range(min(1, values.ndim - 1), values.ndim), key=lambda a: values.shape[a]) if values.ndim else 0
    half = values.shape[axis] // 2 if values.ndim else 0
    if half == 0:
        return values
    first, second = values.narrow(axis, 0, half), values.narrow(axis, half, half)
    second.mul_(_RESIDUE).sub_(first)
    return values


def _offset(values: torch.Tensor, distance: float) -> torch.Tensor:
    """Samples around `distance` times the spread, above and below zero in turns, two of four in order; in place."""
    if values.ndim == 0:
        return values + distance
    for kind in range(4):
        sample = values[kind::4]
        sample += -distance if kind % 2 else distance
        if kind < 2:
            sample.copy_(sample.sort(dim=-1, descending=bool(kind)).values)
    return values


def _levels(values: torch.Tensor, distance: float, generator: torch.Generator) -> torch.Tensor:
    """Channels at random places between -`distance` and `distance` times the spread; in place.

    The first lies at -`distance`, a quarter of them at `distance`.
    """
    places = 2 * torch.rand(values.shape[1], generator=generator, device=values.device) - 1
    places[0], places[1::4] = -1.0, 1.0
    return values.add_(distance * places.reshape(-1, *[1] * (values.ndim - 2)))


def _sparse(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """By sample: zeros but for the borders of tiles, one element (a large, positive one), a few; or nothing."""
    if values.ndim == 0:
        return values
    extent, device = values.shape[-1], values.device
    column = torch.arange(extent, device=device)
    borders = (column % _TILE == 0) | (column % _TILE == _TILE - 1) | (column == extent - 1)
    few = torch.rand(values.shape, generator=generator, device=device) < 2 / _TILE
    if values.ndim == 1:
        return values * (borders | few)
    row = torch.arange(values.numel() // max(extent, 1), device=device).reshape(*values.shape[:-1], 1)
    places = borders.nonzero().reshape(-1).roll(1)
    anywhere = torch.randint(max(extent, 1), row.shape, generator=generator, device=device)
    place = torch.where(row // 4 % 2 == 0, places[row // 8 % len(places)], anywhere)
    kind = torch.arange(values.shape[0], device=device).reshape(-1, *[1] * (values.ndim - 1)) % 4
    single = (column == place) * (values.abs() + values.std())
    kept = (kind == 0) & borders | (kind == 2) & few
    return torch.where(kind == 1, single, values * kept)


def _with_gain(values: torch.Tensor) -> torch.Tensor:
    """Times a factor per position that no half of an axis shares with the other: even and odd, first and last.

    In place.
    """
    for axis, extent in enumerate(values.shape):
        index = torch.arange(extent, device=values.device)
        ramp = 1 + _GAIN * (2 * index / max(extent - 1, 1) - 1) + _GAIN * (index % 2 - 0.5)
        values.mul_(ramp.reshape([-1 if a == axis else 1 for a in range(values.ndim)]))
    return values
