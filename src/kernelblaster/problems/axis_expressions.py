"""Arithmetic over named axes, as definitions use it for derived axes and for constraints. Nothing else is executed."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from kernelblaster.errors import ProblemError

Number = int | float | bool
_MOST_POWER, _LARGEST = 64, 1 << 63
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Number]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def names_in(expression: str) -> frozenset[str]:
    """Names that an expression refers to. Raises ProblemError when it is not a Python expression."""
    return frozenset(node.id for node in ast.walk(_parse(expression)) if isinstance(node, ast.Name))


def evaluate(expression: str, axes: Mapping[str, int]) -> Number:
    """The value of an expression: numbers, axes, + - * / // % **, comparisons, `and`, `or`, `not`.

    Raises ProblemError for anything else, for an unknown axis and for a division by zero.
    """
    try:
        return _value(_parse(expression), axes)
    except (ZeroDivisionError, OverflowError) as error:
        raise ProblemError(f"{expression!r} cannot be computed: {error}", hint="choose other axis values") from error


def _parse(expression: str) -> ast.expr:
    try:
        return ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ProblemError(f"{expression!r} is not an expression", hint="write arithmetic over axis names") from error


def _value(node: ast.expr, axes: Mapping[str, int]) -> Number:
    match node:
        case ast.Constant(value=bool() | int() | float() as number):
            return number
        case ast.Name(id=name) if name in axes:
            return axes[name]
        case ast.Name(id=name):
            raise ProblemError(f"no axis is named {name!r}", hint=f"there are {', '.join(axes) or 'none'}")
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _bounded(op, _value(left, axes), _value(right, axes))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _UNARY[type(op)](_value(operand, axes))
        case ast.BoolOp(op=op, values=values):
            whole = all if isinstance(op, ast.And) else any
            return whole(_value(value, axes) for value in values)
        case ast.Compare(left=left, ops=ops, comparators=rights) if all(type(op) in _COMPARED for op in ops):
            numbers = [_value(operand, axes) for operand in (left, *rights)]
            return all(_COMPARED[type(op)](*pair) for op, *pair in zip(ops, numbers, numbers[1:], strict=False))
    raise ProblemError(f"{ast.unparse(node)!r} is no arithmetic over axes", hint="use + - * / // % ** and comparisons")


def _bounded(op: ast.operator, left: Number, right: Number) -> Number:
    """One operation; a file must not be able to ask for numbers that fill the memory."""
    if isinstance(op, ast.Pow) and abs(right) > _MOST_POWER:
        raise ProblemError(f"the exponent {right} is too large", hint=f"stay at {_MOST_POWER} or below")
    result = _BINARY[type(op)](left, right)
    if isinstance(result, complex) or abs(result) > _LARGEST:
        raise ProblemError("an expression leaves the range of extents", hint="choose other axis values")
    return result
