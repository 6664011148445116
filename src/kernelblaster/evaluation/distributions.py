"""Names of the ways in which input values are drawn, and how far each is scaled. `drawing` makes the values."""

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


_SCALES = {
    Distribution.LARGE: {"fp16": (14, 10, 6, 3), "bf16": (20, 14, 8, 4), "fp32": (20, 14, 8, 4)},
    Distribution.TINY: {"fp16": (-10, -7, -4, -2), "bf16": (-30, -20, -12, -6, -3), "fp32": (-30, -20, -12, -6, -3)},
}


def exponents(distribution: Distribution, precision: str) -> tuple[int, ...]:
    """Binary scales to try, the hardest first, until the problem's result is representable."""
    return _SCALES.get(distribution, {}).get(precision, (0,))
