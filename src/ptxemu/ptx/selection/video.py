"""Video instructions: `vadd`, `vset2`, `vmad` and their like, each one operation of the core with a form for immediate.

The selection of elements in the parallel ones (`.h32`) is not emulated, nor are averages and accumulated sums.
"""

from __future__ import annotations

from ptxemu.ptx.lowering import FunctionLowering
from ptxemu.ptx.tree import Operand, Statement

_VERBS = {"vadd": 0, "vsub": 1, "vabsdiff": 2, "vmin": 3, "vmax": 4, "vshl": 5, "vshr": 6, "vset": 7}
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_SECOND = {"add": 1, "min": 2, "max": 3}
_MERGE = 4
_SIGNED, _UNSIGNED = "s32", "u32"
_PARTS = {f"b{n}": (8 * n, 8) for n in range(4)} | {f"h{n}": (16 * n, 16) for n in range(2)}
_SCALES = {"shr7": 7, "shr15": 15}
_NOT_ACCUMULATED = frozenset(("vadd", "vsub"))


def _part(operand: Operand) -> tuple[Operand, int, int]:
    """Register, first bit and bits of `r`, `r.b2`, `r.h1`."""
    if not isinstance(operand, str):
        return operand, 0, 32
    name, _, selector = operand.rpartition(".")
    return (name, *_PARTS[selector]) if name and selector in _PARTS else (operand, 0, 32)


def _types(parts: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    """The bits that say which types are signed, and what is written beside the types. `vset` has no result type."""
    count = 2 if parts[0].startswith("vset") else 3
    types, rest = parts[1 : 1 + count], parts[1 + count :]
    if not set(types) <= {_SIGNED, _UNSIGNED}:
        raise ValueError(types)
    result, left, right = types if count == 3 else (_UNSIGNED, *types)
    return (left == _SIGNED) << 6 | (right == _SIGNED) << 7 | (result == _SIGNED) << 8, rest


def _modifiers(low: FunctionLowering, parts: tuple[str, ...], rest: list[str]) -> int:
    form = _VERBS[parts[0].rstrip("24")]
    if parts[0].startswith("vset"):
        form |= _COMPARISONS.index(rest.pop(0)) << 3
    if parts[0] in ("vshl", "vshr"):
        mode = next(one for one in rest if one in ("wrap", "clamp"))
        rest.remove(mode)
        form |= (mode == "wrap") << 10
    if "sat" in rest:
        rest.remove("sat")
        form |= 1 << 9
    if len(rest) > 1 or (rest and rest[0] not in _SECOND):
        raise low.unsupported()
    return form


def scalar(low: FunctionLowering, statement: Statement) -> None:
    """`vadd.dtype.atype.btype{.sat}{.op2} d{.part}, a{.part}, b{.part}{, c}` and its like."""
    types, written = _types(statement.parts)
    rest = list(written)
    form = types | _modifiers(low, statement.parts, rest)
    (target, at, bits), (left, left_at, left_bits), (right, right_at, right_bits) = map(_part, statement.operands[:3])
    third = statement.operands[3:]
    if bits < 32:
        form |= _MERGE << 11
    elif rest:
        form |= _SECOND[rest[0]] << 11
    if bool(third) != (bits < 32 or bool(rest)):
        raise low.unsupported()
    form |= left_at << 24 | left_bits << 32 | right_at << 40 | right_bits << 48 | at << 56
    low.emit_lane(f"video{bits}_b32", target, [left, right, third[0] if third else "0"], "alu", immediate=form)


def parallel(low: FunctionLowering, statement: Statement) -> None:
    """`vadd2.dtype.atype.btype{.sat}{.add} d{.mask}, a, b, c` and its like."""
    types, written = _types(statement.parts)
    rest = list(written)
    verb, elements = statement.parts[0][:-1], int(statement.parts[0][-1])
    form = types | _modifiers(low, statement.parts, rest)
    if rest and (rest != ["add"] or verb in _NOT_ACCUMULATED or form >> 9 & 1):
        raise low.unsupported()
    target, *sources = statement.operands
    mask = (1 << elements) - 1
    if isinstance(target, str) and not low.is_register(target):
        target, _, chosen = target.rpartition(".")
        mask = sum(1 << int(digit) for digit in chosen[1:])
    form |= (_SECOND["add"] if rest else 0) << 11 | elements << 14 | mask << 17
    low.emit_lane("video_parallel_b32", target, sources, "alu", immediate=form)


def product(low: FunctionLowering, statement: Statement) -> None:
    """`vmad.dtype.atype.btype{.po}{.sat}{.shr7|.shr15} d, {-}a{.part}, {-}b{.part}, {-}c`"""
    form, rest = _types(statement.parts)
    target, *sources = statement.operands
    negated = [isinstance(one, str) and one.startswith("-") for one in sources]
    plain = [one[1:] if sign and isinstance(one, str) else one for one, sign in zip(sources, negated, strict=True)]
    (left, left_at, left_bits), (right, right_at, right_bits) = _part(plain[0]), _part(plain[1])
    for one in rest:
        form |= {"sat": 1 << 9, "po": 1 << 10}.get(one, 0) or _SCALES[one] << 14
    form |= (negated[0] != negated[1]) << 11 | negated[2] << 12
    form |= left_at << 24 | left_bits << 32 | right_at << 40 | right_bits << 48
    low.emit_lane("video_product_b32", target, [left, right, plain[2]], "imad", immediate=form)


VIDEO = {
    **dict.fromkeys(_VERBS, scalar),
    **{f"{name}{n}": parallel for name in ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vset") for n in (2, 4)},
    "vmad": product,
}
