"""IEEE arithmetic with exact rationals: the reference for every rounding mode, written without floating point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

NAN, INF = math.nan, math.inf


@dataclass(frozen=True)
class Format:
    """A binary floating-point format: significand bits with the implicit one, and the largest exponent."""

    bits: int
    precision: int
    largest_exponent: int

    def decode(self, code: int) -> float | Fraction:
        """The number a bit pattern stands for; NaN, infinities and -0.0 as floats."""
        fraction_bits = self.precision - 1
        sign = -1 if code >> (self.bits - 1) else 1
        exponent = code >> fraction_bits & ((1 << (self.bits - 1 - fraction_bits)) - 1)
        fraction = code & ((1 << fraction_bits) - 1)
        if exponent == 2 * self.largest_exponent + 1:
            return NAN if fraction else sign * INF
        if exponent == 0 and fraction == 0:
            return math.copysign(0.0, sign)
        scale = max(exponent, 1) - self.largest_exponent - fraction_bits
        significand = fraction + ((1 << fraction_bits) if exponent else 0)
        return sign * Fraction(significand) * Fraction(2) ** scale

    def encode(self, value: float | Fraction, mode: str) -> int:
        """The bit pattern of a number rounded by `rn`, `rz`, `rm` or `rp`; NaN is -1."""
        fraction_bits = self.precision - 1
        infinity = (2 * self.largest_exponent + 1) << fraction_bits
        sign_bit = 1 << (self.bits - 1)
        if isinstance(value, float) and not math.isfinite(value):
            return -1 if math.isnan(value) else infinity | (sign_bit if value < 0 else 0)
        if value == 0:
            negative = isinstance(value, float) and math.copysign(1, value) < 0
            return sign_bit if negative else 0
        exact = abs(Fraction(value))
        exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
        exponent -= exact < Fraction(2) ** exponent
        exponent = max(exponent, 1 - self.largest_exponent)
        scaled = exact / Fraction(2) ** (exponent - fraction_bits)
        kept = self._round(scaled, value < 0, mode)
        code = ((exponent + self.largest_exponent - 1) << fraction_bits) + kept
        if code >= infinity:
            outward = mode == "rn" or (mode == "rp" and value > 0) or (mode == "rm" and value < 0)
            code = infinity if outward else infinity - 1
        return code | (sign_bit if value < 0 else 0)

    @staticmethod
    def _round(scaled: Fraction, negative: bool, mode: str) -> int:
        floor = scaled.numerator // scaled.denominator
        rest = scaled - floor
        if mode == "rn":
            return floor + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and floor % 2 == 1))
        away = (mode == "rp" and not negative) or (mode == "rm" and negative)
        return floor + (away and rest > 0)


F16, BF16, F32, F64 = Format(16, 11, 15), Format(16, 8, 127), Format(32, 24, 127), Format(64, 53, 1023)
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}

Number = float | Fraction


def _special(*values: Number) -> bool:
    return any(isinstance(value, float) and not math.isfinite(value) for value in values)


def _sign(value: Number) -> float:
    return math.copysign(1.0, value) if isinstance(value, float) else (1.0 if value > 0 else -1.0)


def _zero(left: Number, right: Number, mode: str) -> float:
    """The zero that a sum of opposite or zero terms gives."""
    if left == 0 and right == 0 and _sign(left) == _sign(right):
        return math.copysign(0.0, _sign(left))
    return -0.0 if mode == "rm" else 0.0


def add(a: Number, b: Number, mode: str = "rn") -> Number:
    """a + b"""
    if _special(a, b):
        return _ieee(np.add, a, b)
    total = Fraction(a) + Fraction(b)
    return total if total else _zero(a, b, mode)


def sub(a: Number, b: Number, mode: str = "rn") -> Number:
    """a - b"""
    return add(a, -b, mode)


def mul(a: Number, b: Number, mode: str = "rn") -> Number:
    """a * b"""
    if _special(a, b):
        return _ieee(np.multiply, a, b)
    product = Fraction(a) * Fraction(b)
    return product if product else math.copysign(0.0, _sign(a) * _sign(b))


def div(a: Number, b: Number, mode: str = "rn") -> Number:
    """a / b"""
    if _special(a, b) or b == 0:
        return _ieee(np.divide, a, b)
    quotient = Fraction(a) / Fraction(b)
    return quotient if quotient else math.copysign(0.0, _sign(a) * _sign(b))


def fma(a: Number, b: Number, c: Number, mode: str = "rn") -> Number:
    """a * b + c without rounding between"""
    return add(mul(a, b), c, mode)


def sqrt(a: Number, mode: str = "rn") -> Number:
    """A rational that rounds as the square root does in every format here: exact, or sticky below 2^-200."""
    if isinstance(a, float):
        return NAN if math.isnan(a) or a < 0 else a
    if a < 0:
        return NAN
    shift = 1400
    root = math.isqrt((a.numerator << 2 * shift) // a.denominator)
    exact = Fraction(root * root, 1 << 2 * shift) == a
    return Fraction(root, 1 << shift) + (0 if exact else Fraction(1, 1 << (shift + 2)))


def _ieee(operation: np.ufunc, a: Number, b: Number) -> float:
    with np.errstate(all="ignore"):
        return float(operation(np.float64(_near(a)), np.float64(_near(b))))


def _near(value: Number) -> float:
    """A float of the same sign and class: enough where another operand decides."""
    if isinstance(value, float):
        return value
    return 1.0 if value > 0 else -1.0
