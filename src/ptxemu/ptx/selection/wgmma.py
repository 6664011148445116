"""`wgmma`: asynchronous products by a warpgroup, of matrices that descriptors in registers find in shared memory."""

from __future__ import annotations

import re

from ptxemu.ptx.lowering import FunctionLowering
from ptxemu.ptx.operations import PREDICATE
from ptxemu.ptx.tree import Group, Operand, Statement, integer

_HALVES, _EIGHTHS, _BYTES = ("f16", "bf16"), ("e4m3", "e5m2"), ("s8", "u8")
_DEPTH = {**dict.fromkeys(_HALVES, 16), "tf32": 8, **dict.fromkeys((*_EIGHTHS, *_BYTES), 32), "b1": 256}
_RESULTS = {
    "f16": ("f16", "f32"), "bf16": ("f32",), "tf32": ("f32",), **dict.fromkeys(_EIGHTHS, ("f16", "f32")),
    **dict.fromkeys((*_BYTES, "b1"), ("s32",)),
}  # fmt: skip
_WORK = {**dict.fromkeys(_HALVES, 1.0), "tf32": 2.0, **dict.fromkeys((*_EIGHTHS, *_BYTES), 0.5), "b1": 1 / 16}
"""Multiply-adds of fp16 that one takes the time of."""
_SATURATE, _HALF_RESULT, _REGISTERS_A, _ACROSS_A, _ACROSS_B, _NEGATE_A, _NEGATE_B = (1 << k for k in range(7))
_ROWS_OF_WARP = 16
_EVERYONE = 0xFFFFFFFF


def wgmma(low: FunctionLowering, statement: Statement) -> None:
    """The product itself, and the fences, commits and waits around it."""
    verb = statement.parts[1]
    if verb == "mma_async" and "sp" not in statement.parts:
        _multiply(low, statement)
    elif verb in ("fence", "commit_group", "wait_group"):
        groups = statement.operands[0] if statement.operands else "0"
        if not isinstance(groups, str):
            raise low.unsupported("a number of groups is expected")
        everyone = low.constant(_EVERYONE, 32)
        low.emit(f"wgmma_{verb.split('_')[0]}", [0, 0, 0, 0, everyone], "bar", immediate=integer(groups))
    else:
        raise low.unsupported("sparse matrices are not emulated" if "sp" in statement.parts else "wgmma of this form")


def _multiply(low: FunctionLowering, statement: Statement) -> None:
    """`wgmma.mma_async.sync.aligned.SHAPE{.satfinite}.D.A.B{.and.popc} d, a, b, scale-d{, scale-a, scale-b...}`"""
    parts = [part for part in statement.parts[4:] if part not in ("satfinite", "and", "popc")]
    shape, result, a, b = parts
    columns, depth = _extents(shape)
    same_family = a == b or any(a in family and b in family for family in (_EIGHTHS, _BYTES))
    if not same_family or depth != _DEPTH[a] or result not in _RESULTS[a] or columns not in _columns(a):
        raise low.unsupported()
    target, left, right, adds, *scales = statement.operands
    flags = _SATURATE * ("satfinite" in statement.parts) | _HALF_RESULT * (result == "f16")
    if isinstance(left, Group):
        flags |= _REGISTERS_A
        sources = [low.read(one, 32) for one in _items(low, left, 4)]
    else:
        sources = [low.read(left, 64)]
    flags |= _scales(low, scales, a, in_registers=isinstance(left, Group))
    results = [low.destination(one, 32) for one in _items(low, target, columns // (4 if result == "f16" else 2))]
    start = len(low.kernel.registers)
    low.kernel.registers += [*results, *sources, low.read(right, 64)]
    low.emit(
        f"wgmma_{a}_{b}",
        [columns | depth << 16, flags, low.read(adds, PREDICATE), start, low.constant(_EVERYONE, 32)],
        "warpgroup",
        immediate=int(_ROWS_OF_WARP * columns * depth * _WORK[a]),
    )


def _extents(shape: str) -> tuple[int, int]:
    found = re.fullmatch(r"m64n(\d+)k(\d+)", shape)
    if found is None:
        raise ValueError(shape)
    return int(found[1]), int(found[2])


def _columns(kind: str) -> range | list[int]:
    """What N may be."""
    return [8, 16, 24, *range(32, 257, 16)] if kind in (*_BYTES, "b1") else range(8, 257, 8)


def _scales(low: FunctionLowering, scales: list[Operand], kind: str, *, in_registers: bool) -> int:
    """Flags of the signs of the operands, and of which of them are transposed."""
    transposes = {False: (_ACROSS_A, _ACROSS_B), True: (_ACROSS_B,)}[in_registers] if kind in _HALVES else ()
    expected = 0 if kind in (*_BYTES, "b1") else 2 + len(transposes)
    if len(scales) != expected:
        raise low.unsupported(f"{len(scales)} scales where {expected} are expected")
    flags = 0
    for scale, negation in zip(scales, (_NEGATE_A, _NEGATE_B), strict=False):
        if scale not in ("1", "-1"):
            raise low.unsupported("a scale that is neither 1 nor -1")
        flags |= negation * (scale == "-1")
    for transposed, across in zip(scales[2:], transposes, strict=True):
        flags |= across * (transposed == "1")
    return flags


def _items(low: FunctionLowering, operand: Operand, count: int) -> tuple[Operand, ...]:
    items = operand.items if isinstance(operand, Group) else (operand,)
    if len(items) != count:
        raise low.unsupported(f"{len(items)} registers where {count} are expected")
    return items


WGMMA = {"wgmma": wgmma}
