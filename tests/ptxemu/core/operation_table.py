"""Scalar PTX instructions with what each must give, as Python on exact numbers.

An integer case maps Python integers to an integer, taken modulo the result's width; a float case maps exact numbers
(see `exact`) to one, rounded as the instruction says. Approximations are compared with double precision and an error
bound in units in the last place: what the emulator promises, tighter than what PTX documents.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import exact
from approximations import APPROXIMATIONS, approximate, power_of_two
from exact import FORMATS


@dataclass(frozen=True)
class Case:
    """One instruction form.

    Attributes:
        text: PTX with `{d}`, `{a}`, `{b}`, `{c}` for registers.
        result: type of the result; `pred` for a predicate.
        sources: types of the operands.
        expected: from operands to the result.
        mode: rounding of a float result.
        ulp: allowed distance; 0 is bit for bit.
        flush: denormal inputs and results become zero.
        near: of an approximation, whether what a GPU gives of an operand is as near as the PTX ISA says: from the
            operand, the GPU's number and the exact one.
        assembled: from operands to the pattern that the machine code gives which ptxas 13.0 makes of it for sm_90a,
            where that is not what the PTX ISA says.
    """

    text: str
    result: str
    sources: tuple[str, ...]
    expected: Callable
    mode: str = "rn"
    ulp: int = 0
    flush: bool = False
    near: Callable[[float, float, float], bool] | None = None
    assembled: Callable[..., int] | None = None


def bits_of(kind: str) -> int:
    """Width of a type."""
    return 1 if kind == "pred" else int(re.findall(r"\d+", kind)[0]) * (2 if kind.endswith("x2") else 1)


def signed(value: int, bits: int) -> int:
    """The low bits as two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def case(name: str, expected: Callable, result: str = "", sources: str = "", **more: object) -> Case:
    kind = name.split(".")[-1]
    operands = tuple((sources or " ".join([kind] * expected.__code__.co_argcount)).split())
    registers = ", ".join("{" + letter + "}" for letter in "dabc"[: len(operands) + 1])
    return Case(f"{name} {registers};", result or kind, operands, expected, **more)  # type: ignore[arg-type]


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _clamp(value: int, bits: int, is_signed: bool = True) -> int:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    return min(max(value, low), high)


def _integers() -> Iterator[Case]:
    for bits in (16, 32, 64):
        for kind in (f"s{bits}", f"u{bits}"):
            yield case(f"add.{kind}", lambda a, b: a + b)
            yield case(f"sub.{kind}", lambda a, b: a - b)
            yield case(f"mul.lo.{kind}", lambda a, b: a * b)
            yield case(f"mul.hi.{kind}", lambda a, b, n=bits: a * b >> n, sources=f"{kind} {kind}")
            yield case(f"mad.lo.{kind}", lambda a, b, c: a * b + c)
            yield case(f"mad.hi.{kind}", lambda a, b, c, n=bits: (a * b >> n) + c, sources=f"{kind} {kind} {kind}")
            yield Case(f"min.{kind} {{d}}, {{a}}, {{b}};", kind, (kind, kind), min)
            yield Case(f"max.{kind} {{d}}, {{a}}, {{b}};", kind, (kind, kind), max)
            yield case(f"sad.{kind}", lambda a, b, c: c + abs(a - b))
            yield case(f"div.{kind}", lambda a, b: _truncated(a, b) if b else None)
            yield case(f"rem.{kind}", lambda a, b: a - _truncated(a, b) * b if b else None)
            yield case(f"shr.{kind}", lambda a, b: a >> min(b, 64), sources=f"{kind} u32")
            for name, test in COMPARISONS.items():
                yield case(f"setp.{name}.{kind}", test, "pred", f"{kind} {kind}")
        kind = f"s{bits}"
        yield case(f"neg.{kind}", lambda a: -a)
        yield case(f"abs.{kind}", lambda a: abs(a))
        kind = f"b{bits}"
        yield case(f"and.{kind}", lambda a, b: a & b)
        yield case(f"or.{kind}", lambda a, b: a | b)
        yield case(f"xor.{kind}", lambda a, b: a ^ b)
        yield case(f"not.{kind}", lambda a: ~a)
        yield case(f"cnot.{kind}", lambda a: a == 0)
        yield case(f"shl.{kind}", lambda a, b: a << min(b, 64), sources=f"{kind} u32")
        text = f"{{{{.reg .pred %q; setp.lt.s32 %q, {{c}}, 0; selp.{kind} {{d}}, {{a}}, {{b}}, %q;}}}}"
        yield Case(text, kind, (kind, kind, "s32"), lambda a, b, c: a if c < 0 else b)
        yield case(f"slct.{kind}.s32", lambda a, b, c: a if c >= 0 else b, kind, f"{kind} {kind} s32")
    for sign in "su":
        for bits in (16, 32):
            wide, kind = f"{sign}{2 * bits}", f"{sign}{bits}"
            yield case(f"mul.wide.{kind}", lambda a, b: a * b, wide, f"{kind} {kind}")
            yield case(f"mad.wide.{kind}", lambda a, b, c: a * b + c, wide, f"{kind} {kind} {wide}")
    yield case("add.sat.s32", lambda a, b: _clamp(a + b, 32))
    yield case("sub.sat.s32", lambda a, b: _clamp(a - b, 32))
    yield case("mad.hi.sat.s32", lambda a, b, c: _clamp((a * b >> 32) + c, 32))


COMPARISONS: dict[str, Callable] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def _highest(value: int) -> int:
    return value.bit_length() - 1 if value else 0xFFFFFFFF


def _magnitude(value: int) -> int:
    return ~value if value < 0 else value


def _nth_set(mask: int, base: int, n: int) -> int:
    if n == -(1 << 31):
        return 0  # as machine code has it: the magnitude is a negative number
    if base > 31:
        return 0xFFFFFFFF
    if n == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    places = range(base, 32) if n > 0 else range(base, -1, -1)
    found = [place for place in places if mask >> place & 1]
    return found[abs(n) - 1] if len(found) >= abs(n) else 0xFFFFFFFF


def _field_operand(value: int, bits: int) -> int:
    """PTX takes the low eight bits; the machine code of 64-bit fields takes all of them."""
    return value if bits == 64 else value & 255


def _extract(value: int, position: int, length: int, bits: int, is_signed: bool) -> int:
    position, length = _field_operand(position, bits), _field_operand(length, bits)
    top = (value >> min(position + length - 1, bits - 1) & 1) if is_signed and length else 0
    taken = [value >> (position + k) & 1 if k < length and position + k < bits else top for k in range(bits)]
    return sum(bit << k for k, bit in enumerate(taken))


def _insert(field: int, base: int, position: int, length: int, bits: int) -> int:
    position, length = _field_operand(position, bits), _field_operand(length, bits)
    for k in range(min(length, bits)):
        place = position + k
        if place < bits:
            base = base & ~(1 << place) | (field >> k & 1) << place
    return base


def _bytes_of(value: int, is_signed: bool = False) -> list[int]:
    return [signed(value >> k, 8) if is_signed else value >> k & 255 for k in (0, 8, 16, 24)]


def _chosen(a: int, b: int, selector: int) -> int:
    both, result = b << 32 | a, 0
    for k in range(4):
        choice = selector >> 4 * k & 15
        byte = both >> 8 * (choice & 7) & 255
        result |= (255 * (byte >> 7) if choice & 8 else byte) << 8 * k
    return result


_PERMUTE_MODES = {
    "f4e": ("3210", "4321", "5432", "6543"),
    "b4e": ("5670", "6701", "7012", "0123"),
    "rc8": ("0000", "1111", "2222", "3333"),
    "ecl": ("3210", "3211", "3222", "3333"),
    "ecr": ("0000", "1110", "2210", "3210"),
    "rc16": ("1010", "3232", "1010", "3232"),
}


def _logic(table: int) -> Callable:
    def apply(a: int, b: int, c: int) -> int:
        rows = [4 if a & 1 << k else 0 for k in range(32)]
        rows = [row | (2 if b >> k & 1 else 0) | (c >> k & 1) for k, row in enumerate(rows)]
        return sum((table >> row & 1) << k for k, row in enumerate(rows))

    return apply


def _byte_pairs(a: int, b: int, left: str, right: str) -> Iterator[tuple[int, int]]:
    return zip(_bytes_of(a, left == "s"), _bytes_of(b, right == "s"), strict=True)


def _bits() -> Iterator[Case]:
    for bits in (32, 64):
        yield case(f"popc.b{bits}", lambda a: a.bit_count(), "u32")
        yield case(f"clz.b{bits}", lambda a, n=bits: n - a.bit_length(), "u32", f"b{bits}")
        yield case(f"brev.b{bits}", lambda a, n=bits: int(f"{a:0{n}b}"[::-1], 2), sources=f"b{bits}")
        for sign in "su":
            kind = f"{sign}{bits}"
            yield case(f"bfind.{kind}", lambda a: _highest(_magnitude(a)), "u32", kind)
            yield case(
                f"bfind.shiftamt.{kind}",
                lambda a, n=bits: n - 1 - _highest(_magnitude(a)) if _magnitude(a) else 0xFFFFFFFF,
                "u32",
                kind,
            )
            yield case(
                f"bfe.{kind}", lambda a, b, c, n=bits, s=sign: _extract(a, b, c, n, s == "s"), kind, f"{kind} u32 u32"
            )
        text = f"bfi.b{bits} {{d}}, {{a}}, {{a}}, {{b}}, {{c}};"
        yield Case(text, f"b{bits}", (f"b{bits}", "u32", "u32"), lambda a, b, c, n=bits: _insert(a, a, b, c, n))
    yield case("fns.b32", _nth_set, sources="b32 u32 s32")
    yield case("bmsk.clamp.b32", lambda a, b: ((1 << min(b, 32)) - 1) << min(a, 32))
    yield case("bmsk.wrap.b32", lambda a, b: ((1 << (b & 31)) - 1) << (a & 31))
    yield case("szext.wrap.s32", lambda a, b: signed(a, b & 31) if b & 31 else 0, sources="s32 u32")
    yield case("szext.clamp.u32", lambda a, b: a & ((1 << min(b, 32)) - 1), sources="u32 u32")
    for table in (0x00, 0xFE, 0x96, 0xE8, 0x1B, 0xCA):
        yield Case(f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table};", "b32", ("b32",) * 3, _logic(table))
    yield case("prmt.b32", _chosen)
    for mode, rows in _PERMUTE_MODES.items():
        yield case(f"prmt.b32.{mode}", lambda a, b, c, r=rows: _chosen(a, b, int(r[c & 3], 16)), "b32", "b32 b32 b32")
    yield case("shf.l.wrap.b32", lambda a, b, c: (b << 32 | a) << (c & 31) >> 32)
    yield case("shf.l.clamp.b32", lambda a, b, c: (b << 32 | a) << min(c, 32) >> 32)
    yield case("shf.r.wrap.b32", lambda a, b, c: (b << 32 | a) >> (c & 31))
    yield case("shf.r.clamp.b32", lambda a, b, c: (b << 32 | a) >> min(c, 32))
    for left in "su":
        for right in "su":
            pairs = partial(_byte_pairs, left=left, right=right)
            result = "s32" if "s" in left + right else "u32"
            kinds = f"{left}32 {right}32 {result}"
            yield case(
                f"dp4a.{left}32.{right}32",
                lambda a, b, c, p=pairs: c + sum(x * y for x, y in p(a, b)), result, kinds,
            )  # fmt: skip
            for part, shift in (("lo", 0), ("hi", 16)):
                yield case(
                    f"dp2a.{part}.{left}32.{right}32",
                    lambda a, b, c, s=shift, x=left, y=right: (
                        c
                        + sum(
                            (signed(a >> 16 * k, 16) if x == "s" else a >> 16 * k & 0xFFFF)
                            * (signed(b >> s + 8 * k, 8) if y == "s" else b >> s + 8 * k & 255)
                            for k in (0, 1)
                        )
                    ),
                    result,
                    kinds,
                )
    yield case("mul24.lo.s32", lambda a, b: signed(a, 24) * signed(b, 24))
    yield case("mul24.hi.u32", lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF) >> 16)
    yield case("mad24.lo.u32", lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c)


def _halves(operation: Callable, is_signed: bool) -> Callable:
    def apply(a: int, b: int) -> int:
        result = 0
        for shift in (0, 16):
            pair = (a >> shift & 0xFFFF, b >> shift & 0xFFFF)
            pair = tuple(signed(one, 16) for one in pair) if is_signed else pair
            result |= (operation(*pair) & 0xFFFF) << shift
        return result

    return apply


def _video() -> Iterator[Case]:
    kinds = ("b32", ("b32", "b32"))
    yield Case("add.u16x2 {d}, {a}, {b};", *kinds, _halves(lambda x, y: x + y, False))
    yield Case("min.s16x2 {d}, {a}, {b};", *kinds, _halves(min, True))
    yield Case("max.u16x2 {d}, {a}, {b};", *kinds, _halves(max, False))
    yield Case("max.s16x2.relu {d}, {a}, {b};", *kinds, _halves(lambda x, y: max(x, y, 0), True))
    yield Case("min.s32.relu {d}, {a}, {b};", "s32", ("s32", "s32"), lambda a, b: max(min(a, b), 0))


def _carries() -> Iterator[Case]:
    for bits in (32, 64):
        kind = f"u{bits}"
        chains: dict[str, Callable] = {
            "add.cc.K {d}, {a}, {b}; addc.cc.K {d}, {a}, {c}; addc.K {d}, 0, {b};": (
                lambda a, b, c, n=bits: b + (a + c + (a + b >> n) >> n)
            ),
            "sub.cc.K {d}, {a}, {b}; subc.cc.K {d}, {c}, {a}; subc.K {d}, {b}, 0;": (
                lambda a, b, c: b - (c - a - (a < b) < 0)
            ),
            "mad.lo.cc.K {d}, {a}, {b}, {c}; madc.hi.K {d}, {a}, {b}, {c};": (
                lambda a, b, c, n=bits: (a * b >> n) + c + (((a * b & (1 << n) - 1) + c) >> n)
            ),
        }
        for chain, expected in chains.items():
            yield Case("{{" + chain.replace("K", kind) + "}}", kind, (kind,) * 3, expected)


def relu(value: exact.Number) -> exact.Number:
    return 0.0 if value <= 0 else value


def saturated(value: exact.Number) -> exact.Number:
    if value != value or value <= 0:
        return 0.0
    return min(value, Fraction(1))


def smaller(a: exact.Number, b: exact.Number) -> exact.Number:
    if a != a or b != b:
        return b if a != a else a
    if a == b == 0:
        return a if math.copysign(1, a) < 0 else b
    return min(a, b)


def larger(a: exact.Number, b: exact.Number) -> exact.Number:
    if a != a or b != b:
        return b if a != a else a
    if a == b == 0:
        return b if math.copysign(1, a) < 0 else a
    return max(a, b)


UNORDERED: dict[str, Callable] = {
    "equ": lambda a, b: a == b,
    "neu": lambda a, b: a != b,
    "ltu": lambda a, b: a < b,
    "leu": lambda a, b: a <= b,
    "gtu": lambda a, b: a > b,
    "geu": lambda a, b: a >= b,
    "nan": lambda a, b: False,
}


def _float_comparisons(kind: str) -> Iterator[Case]:
    for name, test in COMPARISONS.items():
        ordered = lambda a, b, t=test: a == a and b == b and t(a, b)  # noqa: E731
        yield case(f"setp.{name}.{kind}", ordered, "pred", f"{kind} {kind}")
    for name, test in UNORDERED.items():
        unordered = lambda a, b, t=test: a != a or b != b or t(a, b)  # noqa: E731
        yield case(f"setp.{name}.{kind}", unordered, "pred", f"{kind} {kind}")
    yield case(f"setp.num.{kind}", lambda a, b: a == a and b == b, "pred", f"{kind} {kind}")


def _floats() -> Iterator[Case]:
    arithmetic = {"add": exact.add, "sub": exact.sub, "mul": exact.mul, "div": exact.div}
    for kind in ("f32", "f64"):
        for mode in ("rn", "rz", "rm", "rp"):
            for name, operation in arithmetic.items():
                rounded = lambda a, b, o=operation, m=mode: o(a, b, m)  # noqa: E731
                yield case(f"{name}.{mode}.{kind}", rounded, kind, f"{kind} {kind}", mode=mode)
            triple = lambda a, b, c, m=mode: exact.fma(a, b, c, m)  # noqa: E731
            yield case(f"fma.{mode}.{kind}", triple, kind, f"{kind} {kind} {kind}", mode=mode)
            yield case(f"sqrt.{mode}.{kind}", lambda a: exact.sqrt(a), kind, kind, mode=mode)
            yield case(f"rcp.{mode}.{kind}", lambda a, m=mode: exact.div(Fraction(1), a, m), kind, kind, mode=mode)
        yield case(f"min.{kind}", smaller, kind, f"{kind} {kind}")
        yield case(f"max.{kind}", larger, kind, f"{kind} {kind}")
        yield from _float_comparisons(kind)
        yield case(f"testp.finite.{kind}", lambda a: not isinstance(a, float) or math.isfinite(a), "pred", kind)
        yield case(f"testp.infinite.{kind}", lambda a: isinstance(a, float) and math.isinf(a), "pred", kind)
        least = Fraction(2) ** (1 - FORMATS[kind].largest_exponent)
        tiny = lambda a, t=least: not isinstance(a, float) and abs(a) < t  # noqa: E731
        yield case(f"testp.subnormal.{kind}", tiny, "pred", kind)
        normal = lambda a, t=least: a == 0 or (not isinstance(a, float) and abs(a) >= t)  # noqa: E731
        yield case(f"testp.normal.{kind}", normal, "pred", kind)
    yield case("min.NaN.f32", lambda a, b: exact.NAN if a != a or b != b else smaller(a, b))
    for name, operation in (("add", exact.add), ("mul", exact.mul), ("sub", exact.sub)):
        yield case(f"{name}.ftz.f32", lambda a, b, o=operation: o(a, b), "f32", "f32 f32", flush=True)
        yield case(f"{name}.sat.f32", lambda a, b, o=operation: saturated(o(a, b)), "f32", "f32 f32")
    yield case("fma.rn.ftz.f32", lambda a, b, c: exact.fma(a, b, c), "f32", "f32 f32 f32", flush=True)
    yield case("fma.rn.sat.f32", lambda a, b, c: saturated(exact.fma(a, b, c)), "f32", "f32 f32 f32")
    yield case("div.rn.ftz.f32", lambda a, b: exact.div(a, b), "f32", "f32 f32", flush=True)
    yield case("setp.lt.ftz.f32", lambda a, b: a == a and b == b and a < b, "pred", "f32 f32", flush=True)


def _half_arithmetic() -> Iterator[Case]:
    for kind in ("f16", "bf16"):
        yield case(f"add.rn.{kind}", lambda a, b: exact.add(a, b), kind, f"{kind} {kind}")
        yield case(f"sub.rn.{kind}", lambda a, b: exact.sub(a, b), kind, f"{kind} {kind}")
        yield case(f"mul.rn.{kind}", lambda a, b: exact.mul(a, b), kind, f"{kind} {kind}")
        yield case(f"fma.rn.{kind}", lambda a, b, c: exact.fma(a, b, c), kind, f"{kind} {kind} {kind}")
        yield case(f"fma.rn.relu.{kind}", lambda a, b, c: relu(exact.fma(a, b, c)), kind, f"{kind} {kind} {kind}")
        yield case(f"min.{kind}", smaller, kind, f"{kind} {kind}")
        yield case(f"max.{kind}", larger, kind, f"{kind} {kind}")
        yield case(f"neg.{kind}", lambda a: -a)
        yield case(f"abs.{kind}", lambda a: abs(a))
        yield from _float_comparisons(kind)
    yield case("add.sat.f16", lambda a, b: saturated(exact.add(a, b)))
    yield case("fma.rn.sat.f16", lambda a, b, c: saturated(exact.fma(a, b, c)), "f16", "f16 f16 f16")


def to_integer(bits: int, is_signed: bool, mode: str, wide: bool) -> Callable:
    def apply(a: exact.Number) -> int:
        if a != a:
            return 1 << (bits - 1) if wide or bits == 64 else 0
        if isinstance(a, float) and math.isinf(a):
            return _clamp(1 << 80 if a > 0 else -(1 << 80), bits, is_signed)
        round_to = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[mode]
        return _clamp(round_to(Fraction(a)), bits, is_signed)

    return apply


def _conversions() -> Iterator[Case]:
    for source in ("f16", "bf16", "f32", "f64"):
        for mode in ("rni", "rzi", "rmi", "rpi"):
            for kind in ("s32", "u32", "s64", "u64"):
                convert = to_integer(bits_of(kind), kind[0] == "s", mode, source == "f64")
                yield case(f"cvt.{mode}.{kind}.{source}", convert, kind, source)
            whole = lambda a, m=mode: (  # noqa: E731
                a if isinstance(a, float)
                else {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[m](a)
                or math.copysign(0.0, a)
            )  # fmt: skip
            yield case(f"cvt.{mode}.{source}.{source}", lambda a, w=whole: _fraction(w(a)), source, source)
        yield case(f"cvt.rzi.s16.{source}", to_integer(16, True, "rzi", source == "f64"), "s16", source)
    for target in ("f16", "bf16", "f32", "f64"):
        for mode in ("rn", "rz", "rm", "rp"):
            for kind in ("s16", "u16", "s32", "u32", "s64", "u64"):
                yield case(f"cvt.{mode}.{target}.{kind}", lambda a: _fraction(a), target, kind, mode=mode)
    for mode in ("rn", "rz", "rm", "rp"):
        yield case(f"cvt.{mode}.f32.f64", lambda a: a, "f32", "f64", mode=mode)
        yield case(f"cvt.{mode}.f16.f32", lambda a: a, "f16", "f32", mode=mode)
        yield case(f"cvt.{mode}.bf16.f32", lambda a: a, "bf16", "f32", mode=mode)
    for wide, narrow in (("f32", "f16"), ("f32", "bf16"), ("f64", "f16"), ("f64", "f32"), ("f64", "bf16")):
        yield case(f"cvt.{wide}.{narrow}", lambda a: a, wide, narrow)
    yield case("cvt.rn.f16.f64", lambda a: a, "f16", "f64")
    yield case("cvt.rn.bf16.f64", lambda a: a, "bf16", "f64")
    yield case("cvt.sat.f32.f32", saturated, "f32", "f32")
    for source in ("s16", "s32", "s64", "u16", "u32", "u64"):
        for target in ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"):
            bits = int(target[1:])
            if bits > 8 and target != source:
                yield case(f"cvt.{target}.{source}", lambda a: a, target, source)
            if bits <= bits_of(source) and target != source:
                clamp = lambda a, n=bits, s=target[0] == "s": _clamp(a, n, s)  # noqa: E731
                wide = target if bits > 8 else target[0] + "16"
                yield case(f"cvt.sat.{target}.{source}", clamp, wide, source)


def _fraction(value: float | int) -> exact.Number:
    if isinstance(value, float) and (value == 0 or not math.isfinite(value)):
        return value
    return Fraction(value) if value else 0.0


def _approximations() -> Iterator[Case]:
    for name, (function, near) in APPROXIMATIONS.items():
        yield Case(f"{name} {{d}}, {{a}};", "f32", ("f32",), approximate(function), ulp=1, near=near)
        if name.startswith("tanh"):
            continue
        flushed = name.replace(".f32", ".ftz.f32")
        yield Case(f"{flushed} {{d}}, {{a}};", "f32", ("f32",), approximate(function), ulp=1, flush=True, near=near)
    for kind in ("f16", "bf16"):
        name = f"ex2.approx.{'ftz.' if kind == 'bf16' else ''}{kind}"
        yield Case(f"{name} {{d}}, {{a}};", kind, (kind,), approximate(power_of_two), ulp=1)
        yield Case(f"tanh.approx.{kind} {{d}}, {{a}};", kind, (kind,), approximate(math.tanh), ulp=1)


def cases() -> list[Case]:
    """Every case of the table."""
    families = (_integers, _bits, _video, _carries, _floats, _half_arithmetic, _conversions, _approximations)
    return [case for family in families for case in family()]
