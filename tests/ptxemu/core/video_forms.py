"""Video instructions with what each must give, on Python's integers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from operation_table import COMPARISONS, Case, signed

_VERBS: dict[str, Callable[[int, int], int]] = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
}
_PARTS = {"": (0, 32), ".b0": (0, 8), ".b3": (24, 8), ".h1": (16, 16)}
_JOINED: dict[str, Callable[[int, int], int]] = {"add": lambda x, c: x + c, "min": min, "max": max}


def video_forms() -> Iterator[Case]:
    """A choice of every family: types, parts, second operations, saturation, masks."""
    yield from _scalar()
    yield from _merged()
    yield from _parallel()
    yield from _products()
    yield from _shifts()


def _part(value: int, where: str, kind: str) -> int:
    shift, bits = _PARTS[where]
    part = value >> shift & ((1 << bits) - 1)
    return signed(part, bits) if kind[0] == "s" else part


def _clamped(value: int, bits: int, kind: str) -> int:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)
    return min(max(value, low), high)


def _of_kind(value: int, kind: str) -> int:
    return signed(value, 32) if kind[0] == "s" else value & 0xFFFFFFFF


def _scalar() -> Iterator[Case]:
    for verb, compute in _VERBS.items():
        for kinds, left, right in ((("s32",) * 3, ".b0", ".h1"), (("u32", "u32", "s32"), "", ".b3")):
            d, ka, kb = kinds
            plain = lambda a, b, f=compute, x=left, y=right, k=kinds: f(_part(a, x, k[1]), _part(b, y, k[2]))  # noqa: E731
            stem = f"{verb}.{d}.{ka}.{kb}"
            yield Case(f"{stem} {{d}}, {{a}}{left}, {{b}}{right};", "b32", ("b32", "b32"), plain)
            sat = lambda a, b, f=plain, k=d: _clamped(f(a, b), 32, k)  # noqa: E731
            text = f"{stem}.sat {{d}}, {{a}}{left}, {{b}}{right};"
            machine = _at_least_zero(plain) if d == "u32" and verb in _REACHING else None
            yield Case(text, "b32", ("b32", "b32"), sat, assembled=machine)
            for name, join in _JOINED.items():
                joined = lambda a, b, c, f=plain, j=join, k=d: j(_of_kind(f(a, b), k), _of_kind(c, k))  # noqa: E731
                text = f"{stem}.{name} {{d}}, {{a}}{left}, {{b}}{right}, {{c}};"
                machine = _joined_wide(verb, plain, name) if d == "u32" and name != "add" else None
                yield Case(text, "b32", ("b32",) * 3, joined, assembled=machine)
    for name, test in COMPARISONS.items():
        compared = lambda a, b, t=test: int(t(_part(a, ".h1", "s32"), _part(b, "", "s32")))  # noqa: E731
        yield Case(f"vset.s32.s32.{name} {{d}}, {{a}}.h1, {{b}};", "b32", ("b32", "b32"), compared)


# What ptxas 13.0 makes of some forms for sm_90a is not what the PTX ISA says; read off its machine code.
_REACHING = ("vadd", "vsub", "vabsdiff")
"""Verbs whose unsigned results may pass 32 bits."""


def _at_least_zero(plain: Callable[[int, int], int]) -> Callable[[int, int], int]:
    """Saturated below alone: what passes 32 bits wraps."""
    return lambda a, b: max(plain(a, b), 0) & 0xFFFFFFFF


def _joined_wide(verb: str, plain: Callable[[int, int], int], second: str) -> Callable[[int, int, int], int]:
    """The smaller or larger one of 64 bits, to which sums and differences are extended as signed ones of 32."""

    def apply(a: int, b: int, c: int) -> int:
        exact = plain(a, b)
        first = (signed(exact, 32) if verb in ("vadd", "vsub") else exact) & 0xFFFFFFFFFFFFFFFF
        return _JOINED[second](first, c) & 0xFFFFFFFF

    return apply


def _merged() -> Iterator[Case]:
    for where in (".b3", ".h1"):
        shift, bits = _PARTS[where]
        hole = ~(((1 << bits) - 1) << shift)

        def merged(a: int, b: int, c: int, s: int = shift, n: int = bits, kept: int = hole) -> int:
            value = _clamped(signed(a, 32) + signed(b, 32), n, "s")
            return (c & kept) | (value & (1 << n) - 1) << s

        def assembled(a: int, b: int, c: int, s: int = shift, n: int = bits, kept: int = hole) -> int:
            total = (signed(a, 32) + signed(b, 32)) & 0xFFFFFFFFFFFFFFFF  # a negative sum is a large one
            return (c & kept) | min(total, (1 << n - 1) - 1) << s

        text = f"vadd.s32.s32.s32.sat {{d}}{where}, {{a}}, {{b}}, {{c}};"
        machine = assembled if where == ".b3" else _without_upper_half
        yield Case(text, "b32", ("b32",) * 3, merged, assembled=machine)


def _without_upper_half(a: int, b: int, c: int) -> int:
    """The sum in the lower half of a register is extended to the upper one, and that extension is what is merged: at
    most 0x7fff, it is zeros."""
    return c & 0xFFFF


def _lanes(value: int, count: int, kind: str) -> list[int]:
    bits = 32 // count
    parts = [value >> k * bits & ((1 << bits) - 1) for k in range(count)]
    return [signed(one, bits) for one in parts] if kind[0] == "s" else parts


def _parallel() -> Iterator[Case]:
    for count, mask in ((2, ""), (2, ".h1"), (4, ""), (4, ".b310")):
        bits = 32 // count
        chosen = [int(digit) for digit in mask[2:]] if mask else list(range(count))
        for verb, compute in _VERBS.items():
            for kind, saturates in (("u32", False), ("s32", True)):

                def packed(a: int, b: int, c: int, f=compute, k=kind, s=saturates, n=count, w=bits, on=chosen) -> int:
                    found = [f(x, y) for x, y in zip(_lanes(a, n, k), _lanes(b, n, k), strict=True)]
                    found = [_clamped(one, w, k) if s else one for one in found]
                    kept = _lanes(c, n, "u32")
                    return sum(((found[j] if j in on else kept[j]) & (1 << w) - 1) << w * j for j in range(n))

                text = (
                    f"{verb}{count}.{kind}.{kind}.{kind}{'.sat' if saturates else ''} {{d}}{mask}, {{a}}, {{b}}, {{c}};"
                )
                yield Case(text, "b32", ("b32",) * 3, packed)

        def summed(a: int, b: int, c: int, n: int = count, on: tuple[int, ...] = tuple(chosen)) -> int:
            pairs = list(zip(_lanes(a, n, "u"), _lanes(b, n, "u"), strict=True))
            return c + sum(abs(pairs[j][0] - pairs[j][1]) for j in on)

        text = f"vabsdiff{count}.u32.u32.u32.add {{d}}{mask}, {{a}}, {{b}}, {{c}};"
        yield Case(text, "b32", ("b32",) * 3, summed)


def _products() -> Iterator[Case]:
    def product(a: int, b: int, c: int) -> int:
        return _part(a, ".b0", "s32") * _part(b, ".h1", "s32") + signed(c, 32)

    yield Case("vmad.s32.s32.s32 {d}, {a}.b0, {b}.h1, {c};", "b32", ("b32",) * 3, product)
    scaled = lambda a, b, c: _clamped((a * b + c) >> 7, 32, "u32")  # noqa: E731
    text = "vmad.u32.u32.u32.sat.shr7 {d}, {a}, {b}, {c};"
    machine = lambda a, b, c: min(_signed_product(a, b, c) >> 7, 0xFFFFFFFF)  # noqa: E731
    yield Case(text, "b32", ("b32",) * 3, scaled, assembled=machine)
    halfway = lambda a, b, c: (_part(a, ".b3", "u32") * b + c + 1) >> 15  # noqa: E731
    text = "vmad.u32.u32.u32.po.shr15 {d}, {a}.b3, {b}, {c};"
    machine = lambda a, b, c: _signed_product(_part(a, ".b3", "u32"), b, c, 1) >> 15 & 0xFFFFFFFF  # noqa: E731
    yield Case(text, "b32", ("b32",) * 3, halfway, assembled=machine)
    negated = lambda a, b, c: -signed(a, 32) * _part(b, ".b0", "s32") + signed(c, 32)  # noqa: E731
    yield Case("vmad.s32.s32.s32 {d}, -{a}, {b}.b0, {c};", "b32", ("b32",) * 3, negated)


def _signed_product(a: int, b: int, c: int, more: int = 0) -> int:
    """64 bits of what machine code multiplies and adds as signed numbers where PTX has unsigned ones."""
    return (signed(a, 32) * signed(b, 32) + signed(c, 32) + more) & 0xFFFFFFFFFFFFFFFF


def _shifts() -> Iterator[Case]:
    for mode, places in (("clamp", lambda b: min(b, 32)), ("wrap", lambda b: b & 31)):
        left = lambda a, b, p=places: a << p(b)  # noqa: E731
        yield Case(f"vshl.u32.u32.u32.{mode} {{d}}, {{a}}, {{b}};", "b32", ("b32", "b32"), left)
        right = lambda a, b, p=places: signed(a, 32) >> p(b)  # noqa: E731
        yield Case(f"vshr.s32.s32.u32.{mode} {{d}}, {{a}}, {{b}};", "b32", ("b32", "b32"), right)
