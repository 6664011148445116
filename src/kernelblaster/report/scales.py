"""Logarithmic axes, and numbers as the page shows them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_STEPS = (1, 2, 5)
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True)
class Tick:
    """A labelled place of an axis, in pixels."""

    at: float
    label: str


@dataclass(frozen=True)
class LogScale:
    """Maps values in [low, high] to pixels in [start, end], by their logarithm. Both bounds are positive."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Pixels of a value; beyond the ends for values that lie outside."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self, most: int = 6, unit: str = "") -> list[Tick]:
        """Round values inside the scale, at most about so many."""
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        decades = [10.0**power for power in range(first, last + 1)]
        finer = [step * decade for decade in decades for step in _STEPS]
        inside = [value for value in finer if self.low <= value <= self.high]
        if len(inside) > most:
            inside = [value for value in decades if self.low <= value <= self.high]
        inside = inside[:: max(1, math.ceil(len(inside) / most))]
        return [Tick(self(value), f"{short(value)}{unit}") for value in inside]


def around(values: Iterable[float], margin: float = 1.6) -> tuple[float, float]:
    """Bounds of a logarithmic axis that shows these positive values with room beside them."""
    known = list(values)
    return min(known) / margin, max(known) * margin


def short(value: float) -> str:
    """A number in few characters: `12`, `0.35`, `4.2 k`."""
    for size, prefix in _PREFIXES:
        if abs(value) >= size:
            return f"{value / size:.3g} {prefix}"
    return f"{value:.3g}"


def microseconds(value: float) -> str:
    """A time in microseconds with three digits, or as many as it has."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def times(value: float) -> str:
    """A speed-up."""
    return f"{value:.1f}×" if value >= 10 else f"{value:.2f}×"  # noqa: RUF001
