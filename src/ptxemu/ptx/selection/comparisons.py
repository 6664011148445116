"""Comparisons, choices by them, and logic of three operands."""

from __future__ import annotations

from ptxemu.ptx.lowering import FunctionLowering
from ptxemu.ptx.operations import PREDICATE, signatures, width_of
from ptxemu.ptx.selection.names import known_name
from ptxemu.ptx.tree import Group, Operand, Statement, literal

_UNSIGNED_COMPARISONS = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def compare(low: FunctionLowering, statement: Statement) -> None:
    """`setp` with an optional second destination and an optional combination with a predicate."""
    _, comparison, *modifiers, kind = statement.parts
    comparison = _UNSIGNED_COMPARISONS.get(comparison, comparison)
    combine = next((one for one in modifiers if one in ("and", "or", "xor")), None)
    rest = tuple(one for one in modifiers if one != combine)
    destination, left, right, *extra = statement.operands
    if kind in ("f16x2", "bf16x2"):
        _compare_pair(low, statement, comparison, kind, combine)
        return
    name = known_name(low, ("setp", comparison, *rest, kind))
    if combine is None and not isinstance(destination, Group):
        low.emit_lane(name, destination, [left, right], "alu")
        return
    result, negation = low.temporary(PREDICATE), low.temporary(PREDICATE)
    low.emit_lane(name, result, [left, right], "alu")
    low.emit_lane("not_pred", negation, [result], "mov")
    targets = destination.items if isinstance(destination, Group) else (destination,)
    # The combining predicate may be a destination: both results are computed before either is written.
    values = []
    for value in (result, negation)[: len(targets)]:
        if combine is not None:
            low.emit_lane(f"{combine}_pred", value, [value, extra[0]], "mov")
        values.append(value)
    for target, value in zip(targets, values, strict=True):
        low.emit_lane("mov_pred", target, [value], "mov")


def _compare_pair(low: FunctionLowering, statement: Statement, comparison: str, kind: str, combine: str | None) -> None:
    destination, left, right, *extra = statement.operands
    if not isinstance(destination, Group):
        raise low.unsupported("comparison of two halves with one destination")
    results = []
    for which in ("lo", "hi"):
        parts = [low.temporary(16), low.temporary(16)]
        for part, source in zip(parts, (left, right), strict=True):
            low.emit_lane(f"unpack_{which}_b32", part, [source], "mov")
        results.append(low.temporary(PREDICATE))
        low.emit_lane(f"setp_{comparison}_{kind[:-2]}", results[-1], list(parts), "alu")
        if combine is not None:
            low.emit_lane(f"{combine}_pred", results[-1], [results[-1], extra[0]], "mov")
    # The combining predicate may be a destination.
    for target, value in zip(destination.items, results, strict=True):
        low.emit_lane("mov_pred", target, [value], "mov")


def set_value(low: FunctionLowering, statement: Statement) -> None:
    """`set`: a comparison, perhaps combined with a predicate, whose result is a number or a mask."""
    _, comparison, *modifiers, result, kind = statement.parts
    destination, left, right, *extra = statement.operands
    comparison = _UNSIGNED_COMPARISONS.get(comparison, comparison)
    combine = next((one for one in modifiers if one in ("and", "or", "xor")), None)
    rest = tuple(one for one in modifiers if one != combine)
    packed = {"u32": "setmask", "s32": "setmask", kind: "set"}.get(result) if kind in ("f16x2", "bf16x2") else None
    direct = f"{packed or 'set'}_{comparison}_{kind}"
    if (packed or result == kind) and not extra and direct in signatures():
        low.emit_lane(direct, destination, [left, right], "fp16")
        return
    if result not in ("u32", "s32", "f32") or packed:
        raise low.unsupported()
    flag = low.temporary(PREDICATE)
    low.emit_lane(known_name(low, ("setp", comparison, *rest, kind)), flag, [left, right], "alu")
    if combine is not None:
        low.emit_lane(f"{combine}_pred", flag, [flag, extra[0]], "mov")
    low.emit_lane(f"set_from_pred_{'f32' if result == 'f32' else 'u32'}", destination, [flag], "mov")


def select_value(low: FunctionLowering, statement: Statement) -> None:
    """`selp` and `slct` do not look at the type of what they choose from."""
    parts = statement.parts
    if parts[0] == "slct":
        parts = ("slct", f"b{width_of(parts[-2])}", parts[-1])
    low.emit_lane(known_name(low, parts), statement.operands[0], statement.operands[1:], "alu")


def ternary_logic(low: FunctionLowering, statement: Statement) -> None:
    """`lop3{.op}.b32` with its truth table as an immediate; with an operation, whether the result is not 0 goes to a
    predicate, combined with another."""
    combine = statement.parts[1] if len(statement.parts) == 3 else None
    destination, *sources = statement.operands
    predicate: Operand | None = None
    if combine is not None:
        if combine not in ("or", "and") or not isinstance(destination, Group) or len(sources) != 5:
            raise low.unsupported()
        (destination, predicate), other = destination.items, sources.pop()
    table = sources.pop()
    value = literal(table) if isinstance(table, str) else None
    if value is None:
        raise low.unsupported("a truth table that is not a literal")
    if predicate is None:
        low.emit_lane("lop3_b32", destination, sources, "alu", immediate=value)
        return
    result, flag = low.temporary(32), low.temporary(PREDICATE)
    low.emit_lane("lop3_b32", result, sources, "alu", immediate=value)
    low.emit_lane("setp_ne_u32", flag, [result, "0"], "mov")
    low.emit_lane(f"{combine}_pred", predicate, [flag, other], "mov")
    low.emit_lane("mov_b32", destination, [result], "mov")


COMPARISONS = {"setp": compare, "set": set_value, "selp": select_value, "slct": select_value, "lop3": ternary_logic}
