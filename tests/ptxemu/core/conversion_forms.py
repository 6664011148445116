"""Conversions into pairs and short floats, quotients, and other forms that the tables before leave out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import exact
from approximations import near_two_units
from exact import BF16, F16, F32, Format
from operation_table import Case, case, relu, saturated, signed

E5M2 = Format(8, 3, 15)
Encoding = Callable[[exact.Number], int]


def conversion_forms() -> Iterator[Case]:
    """All of them."""
    for family in (_pairs_of_floats, _eighths, _tensor_floats, _quotients, _short_products, _rest):
        yield from family()


def _plain(value: exact.Number) -> exact.Number:
    return value


def _joined(encode: Encoding, turn: Callable[[exact.Number], exact.Number], bits: int) -> Callable[..., int | None]:
    """Two numbers side by side, the first one higher; what becomes of NaNs is open."""

    def apply(a: exact.Number, b: exact.Number) -> int | None:
        return None if a != a or b != b else encode(turn(a)) << bits | encode(turn(b))

    return apply


def _pairs_of_floats() -> Iterator[Case]:
    for kind, form in (("f16", F16), ("bf16", BF16)):
        for mode, turn, name in (("rn", _plain, "rn"), ("rz", _plain, "rz"), ("rn", relu, "rn.relu")):
            encode = lambda value, f=form, m=mode: f.encode(value, m)  # noqa: E731
            text = f"cvt.{name}.{kind}x2.f32 {{d}}, {{a}}, {{b}};"
            yield Case(text, "b32", ("f32", "f32"), _joined(encode, turn, 16))
        yield case(f"cvt.rn.relu.{kind}.f32", relu, kind, "f32")
    yield case("cvt.rn.bf16.f16", lambda a: a, "bf16", "f16")
    yield case("cvt.rn.f16.bf16", lambda a: a, "f16", "bf16")
    yield case("cvt.rn.sat.f16.f32", saturated, "f16", "f32")


def e4m3(value: exact.Number) -> int:
    """To nearest; beyond the largest number, 448, that one."""
    sign = 0x80 if math.copysign(1, value) < 0 else 0
    if math.isinf(value):
        return sign | 0x7E
    size = abs(Fraction(value))
    exponent = max(math.frexp(float(size))[1] - 1, -6) if size else -6
    kept = Format._round(size / Fraction(2) ** (exponent - 3), False, "rn")
    return sign | min((exponent + 6 << 3) + kept, 0x7E)


def e5m2(value: exact.Number) -> int:
    """To nearest; beyond the largest number, that one."""
    code = E5M2.encode(value, "rn")
    return code & 0x80 | min(code & 0x7F, 0x7B)


def _from_e4m3(code: int) -> exact.Number:
    if code & 0x7F == 0x7F:
        return exact.NAN
    size = Fraction(code & 7 | (8 if code & 0x78 else 0)) * Fraction(2) ** (max(code >> 3 & 15, 1) - 10)
    return (-size if code & 0x80 else size) or (-0.0 if code & 0x80 else 0.0)


def _eighths() -> Iterator[Case]:
    for kind, encode in (("e4m3x2", e4m3), ("e5m2x2", e5m2)):
        for name, turn in (("", _plain), (".relu", relu)):
            text = f"cvt.rn.satfinite{name}.{kind}.f32 {{d}}, {{a}}, {{b}};"
            yield Case(text, "b16", ("f32", "f32"), _joined(encode, turn, 8))
        halves = _joined(encode, _plain, 8)
        both = lambda a, h=halves: h(F16.decode(a >> 16), F16.decode(a & 0xFFFF))  # noqa: E731
        yield Case(f"cvt.rn.satfinite.{kind}.f16x2 {{d}}, {{a}};", "b16", ("b32",), both)
    for kind, decode in (("e4m3x2", _from_e4m3), ("e5m2x2", E5M2.decode)):
        for name, turn in (("", _plain), (".relu", relu)):
            wide = _joined(lambda value: F16.encode(value, "rn"), turn, 16)
            both = lambda a, d=decode, w=wide: w(d(a >> 8), d(a & 255))  # noqa: E731
            yield Case(f"cvt.rn{name}.f16x2.{kind} {{d}}, {{a}};", "b32", ("b16",), both)


def _tensor_floats() -> Iterator[Case]:
    """tf32 has 10 bits of a fraction; what stands in the 13 below is open."""
    added = {"rna": lambda bits: 0x1000, "rn": lambda bits: 0xFFF + (bits >> 13 & 1), "rz": lambda bits: 0}

    def rounded(a: exact.Number, more: Callable[[int], int]) -> int | None:
        bits = F32.encode(a, "rn")
        if bits < 0:
            return None
        return bits & 0xFFFFE000 if bits & 0x7F800000 == 0x7F800000 else bits + more(bits) & 0xFFFFE000

    for mode, more in added.items():
        for name, turn in (("", _plain), (".relu", relu)):
            if (mode, name) == ("rna", ".relu"):
                continue  # PTX has none
            text = f"{{{{cvt.{mode}{name}.tf32.f32 {{d}}, {{a}}; and.b32 {{d}}, {{d}}, 0xffffe000;}}}}"
            yield Case(text, "b32", ("f32",), lambda a, m=more, t=turn: rounded(t(a), m))


def _quotients() -> Iterator[Case]:
    """Near only: two units in the last place on a GPU; `div.approx` by divisors that are neither tiny nor huge."""

    def moderate(a: exact.Number, b: exact.Number) -> exact.Number | None:
        return exact.div(a, b) if b == b and Fraction(2) ** -126 <= abs(b) <= Fraction(2) ** 126 else None

    for name, quotient in (("approx", moderate), ("full", exact.div)):
        for flush in (False, True):
            text = f"div.{name}{'.ftz' if flush else ''}.f32 {{d}}, {{a}}, {{b}};"
            yield Case(text, "f32", ("f32", "f32"), quotient, ulp=1, flush=flush, near=near_two_units)


def _short_products() -> Iterator[Case]:
    yield case("mul24.lo.u32", lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF))
    yield case("mul24.hi.s32", lambda a, b: signed(a, 24) * signed(b, 24) >> 16)
    yield case("mad24.lo.s32", lambda a, b, c: signed(a, 24) * signed(b, 24) + c)


def _clamped(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)


def _rest() -> Iterator[Case]:
    for bits in (16, 32, 64):
        kind = f"b{bits}"
        yield case(f"slct.{kind}.f32", lambda a, b, c: a if c >= 0 else b, kind, f"{kind} {kind} f32")
    yield case("abs.ftz.f32", abs, "f32", "f32", flush=True)
    yield case("neg.ftz.f32", lambda a: -a, "f32", "f32", flush=True)
    yield case("szext.wrap.u32", lambda a, b: a & (1 << (b & 31)) - 1, sources="u32 u32")
    yield case("szext.clamp.s32", lambda a, b: signed(a, b) if 0 < b < 32 else a if b else 0, sources="s32 u32")
    for kind, low, high in (("s16", -(1 << 15), (1 << 15) - 1), ("u16", 0, (1 << 16) - 1)):
        packed = lambda a, b, x=low, y=high: (  # noqa: E731
            (_clamped(a, x, y) & 0xFFFF) << 16 | _clamped(b, x, y) & 0xFFFF
        )
        yield Case(f"cvt.pack.sat.{kind}.s32 {{d}}, {{a}}, {{b}};", "b32", ("s32", "s32"), packed)
    for kind, low, high in (("s8", -128, 127), ("u8", 0, 255)):
        packed = lambda a, b, c, x=low, y=high: (  # noqa: E731
            (c & 0xFFFF) << 16 | (_clamped(a, x, y) & 255) << 8 | _clamped(b, x, y) & 255
        )
        yield Case(f"cvt.pack.sat.{kind}.s32.b32 {{d}}, {{a}}, {{b}}, {{c}};", "b32", ("s32", "s32", "b32"), packed)
