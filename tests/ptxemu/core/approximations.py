"""Functions that PTX approximates, and how near a GPU's results must be by the PTX ISA."""

from __future__ import annotations

import math
from collections.abc import Callable

import exact

Function = Callable[[float], float]
Nearness = Callable[[float, float, float], bool]
"""Of an operand, what a GPU gives, and the exact result."""


def approximate(function: Function) -> Callable[[exact.Number], float]:
    """The function of an exact number in double precision; NaN where it has no value."""

    def apply(a: exact.Number) -> float:
        try:
            return function(float(a))
        except (ValueError, OverflowError, ZeroDivisionError):
            return exact.NAN

    return apply


def _square_root_reciprocal(a: float) -> float:
    if a == 0:
        return math.copysign(math.inf, a)
    return 0.0 if math.isinf(a) and a > 0 else 1 / math.sqrt(a)


def power_of_two(a: float) -> float:
    """Infinite or zero far from what single precision holds."""
    return 0.0 if a < -1000 else math.inf if a > 1000 else 2.0**a


def _logarithm(a: float) -> float:
    return -math.inf if a == 0 else math.log2(a)


def near_two_units(a: float, got: float, wanted: float) -> bool:
    """Within two units in the last place."""
    exponent = math.frexp(wanted)[1] - 1 if math.isfinite(wanted) else 0
    return abs(got - wanted) <= 2 * 2.0 ** (max(exponent, -126) - 23)


def _near_logarithm(a: float, got: float, wanted: float) -> bool:
    return abs(got - wanted) <= 2.0**-22 * (1 if 0.5 < a < 2 else abs(wanted))


def _near_wave(a: float, got: float, wanted: float) -> bool:
    """Nothing is promised beyond a hundred half turns, as the PTX ISA has it."""
    return abs(a) > 100 * math.pi or abs(got - wanted) <= 2.0 ** (-20.5 if abs(a) <= 2 * math.pi else -14.7)


APPROXIMATIONS: dict[str, tuple[Function, Nearness | None]] = {
    "ex2.approx.f32": (power_of_two, near_two_units),
    "lg2.approx.f32": (_logarithm, _near_logarithm),
    "rsqrt.approx.f32": (_square_root_reciprocal, None),
    "rcp.approx.f32": (lambda a: math.copysign(math.inf, a) if a == 0 else 1 / a, None),
    "sqrt.approx.f32": (math.sqrt, None),
    "sin.approx.f32": (math.sin, _near_wave),
    "cos.approx.f32": (math.cos, _near_wave),
    "tanh.approx.f32": (math.tanh, lambda a, got, wanted: abs(got - wanted) <= 2.0**-11 * abs(wanted)),
}
"""With the error that the PTX ISA allows, where a GPU has been seen to use more of it than a unit in the last place."""
