"""Numbers that a KernelBench module assigns at its top level, and what it computes from them there."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

_BY_TEXT = frozenset({"globals", "locals", "vars", "eval", "exec", "getattr"})
"""Whoever reads these may read any name."""
_COMPUTING = frozenset({"dict", "int", "float", "len", "max", "min", "range", "round", "sum"})
"""Functions that what follows from numbers may call."""
COLLECTIONS = (ast.Tuple, ast.List, ast.Dict, ast.Call)
"""What holds several numbers at the top level of a module, `dict(...)` included."""
_OF_FOLLOWERS = (
    *(ast.Constant, ast.Name, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List, ast.Dict, ast.Starred, ast.Subscript),
    *(ast.Call, ast.keyword, ast.ListComp, ast.comprehension, ast.operator, ast.unaryop, ast.expr_context),
)
_OPERATIONS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Mult: operator.mul,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_MOST_BITS = 64
"""Exponents and shifts beyond this make no extent, and may take for ever."""


@dataclass(frozen=True)
class ModuleNumbers:
    """What is read off a module.

    Attributes:
        parameters: whole numbers by name.
        scalars: fractions by name.
        followers: name -> expression over these and earlier ones, where it changes when they do; in order.
        drawing: numbers that inputs are drawn with, and that nothing else reads.
    """

    parameters: Mapping[str, int]
    scalars: Mapping[str, float]
    followers: Mapping[str, str]
    drawing: frozenset[str]


def read_numbers(tree: ast.Module) -> ModuleNumbers:
    """Numbers that something reads when its functions are called, and nothing that is kept from the import."""
    assigned = dict(_assigned_once(tree))
    following = {name: _names(value) for name, value in _follow(tree, assigned)}
    parts = list(_run_on_import(tree, skipped=[assigned[name] for name in following]))
    frozen = {name for part in parts for name in _loaded(part)}
    computed = {id(node) for name in following for node in ast.walk(assigned[name])}
    read = {name.id for name in filter(_is_loaded, ast.walk(tree)) if id(name) not in computed}
    for name in reversed(following):
        if name in frozen:
            frozen |= following[name]
        if name in read:
            read |= following[name]
    numbers: dict[str, float] = {}
    followers: dict[str, str] = {}
    values: dict[str, float] = {}
    for name, expression in assigned.items():
        number = number_of(expression, values)
        if number is not None:
            values[name] = number
        if name in frozen or not (name in read or read & _BY_TEXT):
            continue
        if following.get(name, set()) & {*numbers, *followers}:
            followers[name] = ast.unparse(expression)
        elif number is not None:
            numbers[name] = number
    parameters = {name: value for name, value in numbers.items() if isinstance(value, int) and value >= 0}
    scalars = {name: value for name, value in numbers.items() if not isinstance(value, int)}
    return ModuleNumbers(parameters, scalars, followers, frozenset(numbers) - _reaching(tree, assigned))


def _reaching(tree: ast.Module, assigned: Mapping[str, ast.expr]) -> set[str]:
    """Names that the model reads, what it is made with, and what these call or are computed from."""
    defined: dict[str, ast.AST] = dict(assigned)
    defined |= {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    reached: set[str] = set()
    left = {"Model", "get_init_inputs"}
    while left:
        reached |= left
        left = {name for one in left if one in defined for name in _loaded(defined[one])} - reached
    return {*defined} if reached & _BY_TEXT else reached


def number_of(node: ast.expr, values: Mapping[str, float] | None = None) -> float | None:
    """What arithmetic on literals and named values comes to; None for anything else."""
    match node:
        case ast.Constant(value=value) if type(value) in (int, float):
            return value  # type: ignore[return-value]
        case ast.Name(id=name):
            return (values or {}).get(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = number_of(operand, values)
            return None if number is None else -number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            one, other = number_of(left, values), number_of(right, values)
            return None if one is None or other is None else _computed(op, one, other)
    return None


def _computed(op: ast.operator, one: float, other: float) -> float | None:
    if isinstance(op, ast.Pow | ast.LShift) and abs(other) > _MOST_BITS:
        return None
    try:
        number: int | float | complex = _OPERATIONS[type(op)](one, other)
    except (ArithmeticError, TypeError, ValueError):
        return None  # as the module itself fails with, or a shift of a fraction
    return None if isinstance(number, complex) else number


def _assigned_once(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Names that are assigned once, at the top level, with what they are assigned."""
    targets = [target for node in tree.body for target in _targets(node)]
    targets += [name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in 2 * node.names]
    pairs: list[tuple[ast.expr, ast.expr]] = []
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(values):
                pairs += zip(names, values, strict=True)
            case ast.Assign(targets=names, value=value):
                pairs += ((name, value) for name in names)
            case ast.AnnAssign(target=name, value=ast.expr() as value):
                pairs.append((name, value))
    for target, value in pairs:
        if isinstance(target, ast.Name) and targets.count(target.id) == 1:
            yield target.id, value


def _follow(tree: ast.Module, assigned: Mapping[str, ast.expr]) -> Iterator[tuple[str, ast.expr]]:
    """Those of them that can be computed again from numbers and from each other, in order."""
    bound = {*_stored(tree)} | {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    known: set[str] = set()
    for name, value in assigned.items():
        computing = (_COMPUTING - bound) | known | {*_stored(value)}
        if number_of(value) is not None:
            known.add(name)
        elif all(isinstance(node, _OF_FOLLOWERS) for node in ast.walk(value)) and {*_loaded(value)} <= computing:
            calls = [node for node in ast.walk(value) if isinstance(node, ast.Call)]
            if all(isinstance(call.func, ast.Name) and call.func.id in _COMPUTING - bound for call in calls):
                known.add(name)
                yield name, value


def _targets(node: ast.stmt) -> Iterator[str]:
    return iter(()) if isinstance(node, ast.FunctionDef | ast.ClassDef) else _stored(node)


def _stored(part: ast.AST) -> Iterator[str]:
    for inner in ast.walk(part):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id


def _run_on_import(node: ast.AST, skipped: list[ast.expr]) -> Iterator[ast.AST]:
    """Parts that are run while the module is imported: no bodies of functions, but their defaults and decorators."""
    for child in ast.iter_child_nodes(node):
        if child in skipped or _is_main(child):
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (*child.decorator_list, *child.args.defaults, *filter(None, child.args.kw_defaults))
        elif isinstance(child, ast.Lambda):
            yield from (*child.args.defaults, *filter(None, child.args.kw_defaults))
        elif isinstance(child, ast.Name):
            yield child
        else:
            yield from _run_on_import(child, skipped)


def _is_main(node: ast.AST) -> bool:
    """Whether it is `if __name__ == "__main__":`, which does not hold of a module that is imported."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and "__name__" in _names(node.test)


def _names(node: ast.AST) -> set[str]:
    return {*_loaded(node)}


def _loaded(part: ast.AST) -> Iterator[str]:
    for inner in filter(_is_loaded, ast.walk(part)):
        yield inner.id


def _is_loaded(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
