"""Names of the ways in which input values are drawn, how far each is scaled, and what fp32 may lose on each.

`drawing` makes the values.
"""

from __future__ import annotations

from enum import StrEnum


class Distribution(StrEnum):
    """Names that appear in `ErrorFigures.distribution`."""

    DECLARED = "declared"
    NORMAL = "normal"
    LARGE = "large"
    TINY = "tiny"
    CANCELLING = "cancelling"
    NEGATIVE = "negative"
    OFFSET = "offset"
    LEVELS = "levels"
    SPARSE = "sparse"
    COARSE = "coarse"
    MASKED = "masked"
    MIXED = "mixed"
    BURST = "burst"


FAR_FROM_ZERO = (Distribution.OFFSET, Distribution.LEVELS)
"""Means many times larger than the spread."""
MASKS = (2, 1, 0)
"""Ways to mask, the hardest first: with infinities of both signs, with -infinity, with -infinity in one row."""
MASKS_OF_MIXTURES = MASKS[:2]
"""Timed calls rotate values: what is defined for infinities at a few places alone is not defined for these."""
ACCUMULATION = 2.0**-15
"""Some 256 ulps of fp32."""
_OFFSET_ACCUMULATION = 2.0**-11
"""A serial sum over a row loses 2^-20 of values that are 2^9 times as large as what is left once the mean is gone."""
_SCALES: dict[Distribution, dict[str, tuple[int, ...]]] = {
    Distribution.BURST: dict.fromkeys(("fp16", "bf16", "fp32"), (6, 4, 2)),
    Distribution.COARSE: {"fp16": (5, 3, 1, 0), "bf16": (3, 2, 1, 0), "fp32": (8, 5, 3, 1, 0)},
    Distribution.LARGE: {"fp16": (14, 10, 6, 3), "bf16": (20, 14, 8, 4), "fp32": (20, 14, 8, 4)},
    Distribution.MASKED: dict.fromkeys(("fp16", "bf16", "fp32"), MASKS),
    Distribution.MIXED: {"fp16": (6, 3, 1), "bf16": (6, 3, 1), "fp32": (7, 3, 1)},
    **{name: {"fp16": (9, 6, 4, 2), "bf16": (6, 4, 2), "fp32": (9, 6, 4, 2)} for name in FAR_FROM_ZERO},
    Distribution.SPARSE: {"fp16": (8, 5, 4, 2, 0), "bf16": (8, 5, 4, 2, 0), "fp32": (8, 5, 4, 2, 0)},
    Distribution.TINY: {"fp16": (-10, -7, -4, -2), "bf16": (-30, -20, -12, -6, -3), "fp32": (-30, -20, -12, -6, -3)},
}


def exponents(distribution: Distribution, precision: str, layers: int) -> tuple[int, ...]:
    """Binary scales to try, the hardest first, until the problem's result is representable.

    That of `offset` and of `levels` is of the mean, in units of the spread, that of `mixed` is of means and of large
    samples, that of `burst` of its piece; that of `masked` says how (`MASKS`). Where several layers follow each other,
    sparse inputs are not scaled: large ones make a later layer depend on the last bit of an earlier one's result. So
    samples of a mixture differ less there, and none are large in fp32: which of two scores an attention takes would
    depend on the order in which they were summed. Coarse ones are exact in fp32 up to 2^3: a product of two sums, each
    with a bias of lower bits, then has 24 bits.

    Args:
        distribution: which.
        precision: of the run.
        layers: matrices among the weights.
    """
    if layers > 1:
        if distribution is Distribution.SPARSE:
            return (0,)
        if distribution is Distribution.MIXED:
            return (3, 1)
        if distribution is Distribution.LARGE and precision == "fp32":
            return ()
        if distribution is Distribution.COARSE and precision == "fp32":
            return (3, 1, 0)
    return _SCALES.get(distribution, {}).get(precision, (0,))


def accumulation(distribution: Distribution) -> float:
    """Relative loss granted to fp32 arithmetic in any order, in units of the results' size (see `budget`)."""
    return _OFFSET_ACCUMULATION if distribution in FAR_FROM_ZERO else ACCUMULATION


def accumulation_at(distance: float) -> float:
    """The same where values lie `distance` times their spread from zero.

    A serial sum over a row loses 2^-20 of values that are so many times as large as what is left without their mean.
    """
    return min(max(2.0**-20 * distance, ACCUMULATION), _OFFSET_ACCUMULATION)


def attempts(distribution: Distribution) -> tuple[Distribution, ...]:
    """What to draw when a distribution tells nothing about a problem, in this order; it comes first itself.

    Large values do where a later layer depends on digits that an earlier result, rounded to 16 bits, does not have.
    Signed ones do where the logarithm of an input is taken.
    """
    if distribution is Distribution.DECLARED:
        return (distribution,)
    instead = {
        Distribution.LARGE: (Distribution.COARSE,),
        Distribution.MIXED: (Distribution.NORMAL, Distribution.BURST),
    }
    return (distribution, *instead.get(distribution, ()), Distribution.DECLARED)
