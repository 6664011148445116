"""Further forms of what `operation_table` has: pairs of halves, flushed, as numbers, into narrow integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import exact
from exact import FORMATS
from operation_table import (
    COMPARISONS,
    UNORDERED,
    Case,
    case,
    larger,
    relu,
    saturated,
    signed,
    smaller,
    to_integer,
)
from video_forms import video_forms

Operation = Callable[..., exact.Number]


def forms() -> list[Case]:
    """All of them."""
    families = (_pairs, _numbers, _flushed, _signs, _narrow, _directed, _absolute, _short_products, video_forms)
    return [one for family in families for one in family()]


def _nan(operation: Operation) -> Operation:
    """The operation where a NaN among the operands makes the result one."""
    return lambda a, b: exact.NAN if a != a or b != b else operation(a, b)


def _of_pairs(operation: Operation, kind: str) -> Callable[..., int | None]:
    """On both halves of 32-bit patterns; PTX leaves the bits of NaNs open."""

    def apply(*patterns: int) -> int | None:
        result = 0
        for shift in (0, 16):
            found = operation(*(FORMATS[kind].decode(one >> shift & 0xFFFF) for one in patterns))
            if found != found:
                return None
            whole = isinstance(found, float) and math.isfinite(found) and found != 0
            result |= FORMATS[kind].encode(Fraction(found) if whole else found, "rn") << shift
        return result

    return apply


def _pairs() -> Iterator[Case]:
    two: dict[str, Operation] = {
        "add.rn.K": exact.add,
        "sub.rn.K": exact.sub,
        "mul.rn.K": exact.mul,
        "min.K": smaller,
        "max.K": larger,
        "min.NaN.K": _nan(smaller),
        "max.NaN.K": _nan(larger),
    }
    three: dict[str, Operation] = {
        "fma.rn.K": exact.fma,
        "fma.rn.relu.K": lambda a, b, c: relu(exact.fma(a, b, c)),
    }
    of_f16: dict[str, Operation] = {
        f"{name}.sat.K": lambda a, b, o=operation: saturated(o(a, b))
        for name, operation in (("add", exact.add), ("sub", exact.sub), ("mul", exact.mul))
    }
    for kind in ("f16", "bf16"):
        for count, table in ((2, two), (3, three), (2, of_f16 if kind == "f16" else {})):
            for name, operation in table.items():
                text, registers = name.replace("K", f"{kind}x2"), ", ".join("{" + one + "}" for one in "abc"[:count])
                yield Case(f"{text} {{d}}, {registers};", "b32", ("b32",) * count, _of_pairs(operation, kind))
        for name, turn in (("neg", lambda a: -a), ("abs", abs)):
            yield Case(f"{name}.{kind}x2 {{d}}, {{a}};", "b32", ("b32",), _of_pairs(turn, kind))


def _numbers() -> Iterator[Case]:
    """`set`, which gives 1.0 or 0.0."""
    for kind in ("f16", "bf16"):
        for name, test in COMPARISONS.items():
            ordered = lambda a, b, t=test: _one(a == a and b == b and t(a, b))  # noqa: E731
            yield case(f"set.{name}.{kind}.{kind}", ordered, kind, f"{kind} {kind}")
        for name, test in UNORDERED.items():
            unordered = lambda a, b, t=test: _one(a != a or b != b or t(a, b))  # noqa: E731
            yield case(f"set.{name}.{kind}.{kind}", unordered, kind, f"{kind} {kind}")
        for name, operation in (("min", smaller), ("max", larger)):
            yield case(f"{name}.NaN.{kind}", _nan(operation), kind, f"{kind} {kind}")
    for name, operation in (("sub", exact.sub), ("mul", exact.mul)):
        yield case(f"{name}.sat.f16", lambda a, b, o=operation: saturated(o(a, b)), "f16", "f16 f16")


def _one(holds: bool) -> exact.Number:
    return Fraction(1) if holds else 0.0


def _flushed() -> Iterator[Case]:
    for name, test in COMPARISONS.items():
        ordered = lambda a, b, t=test: a == a and b == b and t(a, b)  # noqa: E731
        if name != "lt":  # stands in the table
            yield case(f"setp.{name}.ftz.f32", ordered, "pred", "f32 f32", flush=True)
    for name, test in UNORDERED.items():
        unordered = lambda a, b, t=test: a != a or b != b or t(a, b)  # noqa: E731
        yield case(f"setp.{name}.ftz.f32", unordered, "pred", "f32 f32", flush=True)
    yield case("setp.num.ftz.f32", lambda a, b: a == a and b == b, "pred", "f32 f32", flush=True)
    for name, operation in (("min", smaller), ("max", larger)):
        yield case(f"{name}.ftz.f32", operation, "f32", "f32 f32", flush=True)
        yield case(f"{name}.ftz.NaN.f32", _nan(operation), "f32", "f32 f32", flush=True)
    for name, operation in (("add", exact.add), ("sub", exact.sub), ("mul", exact.mul)):
        yield case(f"{name}.ftz.sat.f32", lambda a, b, o=operation: saturated(o(a, b)), "f32", "f32 f32", flush=True)
    triple = lambda a, b, c: saturated(exact.fma(a, b, c))  # noqa: E731
    yield case("fma.rn.ftz.sat.f32", triple, "f32", "f32 f32 f32", flush=True)
    yield case("sqrt.rn.ftz.f32", exact.sqrt, "f32", "f32", flush=True)
    yield case("rcp.rn.ftz.f32", lambda a: exact.div(Fraction(1), a), "f32", "f32", flush=True)


def _signs() -> Iterator[Case]:
    def copied(a: exact.Number, b: exact.Number) -> exact.Number | None:
        if a != a:
            return None  # the sign of a NaN is lost here
        negative = math.copysign(1, a) < 0 if isinstance(a, float) else a < 0
        return -abs(b) if negative else abs(b)

    for kind in ("f32", "f64"):
        yield case(f"abs.{kind}", abs, kind, kind)
        yield case(f"neg.{kind}", lambda a: -a, kind, kind)
        yield case(f"copysign.{kind}", copied, kind, f"{kind} {kind}")
        yield case(f"testp.number.{kind}", lambda a: a == a, "pred", kind)
        yield case(f"testp.notanumber.{kind}", lambda a: a != a, "pred", kind)
    yield case("max.NaN.f32", _nan(larger), "f32", "f32 f32")


def _open_for_nan(operation: Callable[[exact.Number], int]) -> Callable[[exact.Number], int | None]:
    return lambda a: None if a != a else operation(a)


def _narrow() -> Iterator[Case]:
    for source in ("f16", "bf16", "f32", "f64"):
        for mode in ("rni", "rzi", "rmi", "rpi"):
            for kind in ("s8", "u8", "s16", "u16"):
                if (mode, kind) == ("rzi", "s16"):
                    continue  # stands in the table
                if source == "bf16" and kind[1:] == "8":
                    continue  # PTX has none
                # What becomes of a NaN in eight bits, PTX leaves open.
                convert = to_integer(int(kind[1:]), kind[0] == "s", mode, source == "f64")
                convert = _open_for_nan(convert) if kind[1:] == "8" else convert
                yield case(f"cvt.{mode}.{kind}.{source}", convert, kind[0] + "16", source)


def _directed() -> Iterator[Case]:
    """Rounded otherwise than to nearest, and saturated or flushed."""
    for mode in ("rz", "rm", "rp"):
        two = {"add": exact.add, "mul": exact.mul}
        for name, operation in two.items():
            rounded = lambda a, b, o=operation, m=mode: saturated(o(a, b, m))  # noqa: E731
            yield case(f"{name}.{mode}.sat.f32", rounded, "f32", "f32 f32", mode=mode)
            flushed = lambda a, b, o=operation, m=mode: o(a, b, m)  # noqa: E731
            yield case(f"{name}.{mode}.ftz.f32", flushed, "f32", "f32 f32", mode=mode, flush=True)
        triple = lambda a, b, c, m=mode: saturated(exact.fma(a, b, c, m))  # noqa: E731
        yield case(f"fma.{mode}.sat.f32", triple, "f32", "f32 f32 f32", mode=mode)
        yield case(f"fma.{mode}.ftz.sat.f32", triple, "f32", "f32 f32 f32", mode=mode, flush=True)


def _absolute() -> Iterator[Case]:
    """The smaller or larger absolute value, with the product of the signs."""

    def signed_by(operation: Operation) -> Operation:
        def apply(a: exact.Number, b: exact.Number) -> exact.Number | None:
            if a != a or b != b:
                return None  # which sign a NaN gives is open
            negative = (exact.mul(_sign(a), _sign(b)) or 0) < 0
            found = operation(abs(a), abs(b))
            return -found if negative else found

        return apply

    for kind in ("f32", "f16", "bf16"):
        for name, operation in (("min", smaller), ("max", larger)):
            yield case(f"{name}.xorsign.abs.{kind}", signed_by(operation), kind, f"{kind} {kind}")


def _sign(value: exact.Number) -> Fraction:
    return (
        Fraction(-1 if math.copysign(1.0, value) < 0 else 1)
        if isinstance(value, float)
        else Fraction(-1 if value < 0 else 1)
    )


def _short_products() -> Iterator[Case]:
    """Of the low 24 bits of two integers."""
    for kind in ("u32", "s32"):
        low = lambda a, k=kind: signed(a, 24) if k == "s32" else a & 0xFFFFFF  # noqa: E731
        high = lambda a, b, c, f=low: (f(a) * f(b) >> 16) + c  # noqa: E731
        yield case(f"mad24.hi.{kind}", high, kind, f"{kind} {kind} {kind}")
