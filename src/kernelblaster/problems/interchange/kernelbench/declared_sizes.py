"""`SIZES` at the top level of a KernelBench module: sizes that it declares, or a name of its own for something else.

`SIZES = {"small": {"batch_size": 16}}` declares sizes, each with the numbers that are others than the module's. What
else has that name, or `SCALARS`, is the module's own business and called otherwise: a problem has tables called so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

from kernelblaster.errors import ProblemError
from kernelblaster.problems.interchange.kernelbench.text_edits import Piece, with_pieces
from kernelblaster.problems.python_source import parse_python

SIZES = "SIZES"
_TABLES = (SIZES, "SCALARS")


def declared_sizes(tree: ast.Module) -> dict[str, dict[str, int]]:
    """Sizes that a module declares, with the numbers that it gives for each; none where it declares none."""
    values = [node.value for node in tree.body if isinstance(node, ast.Assign) and _assigns(node, SIZES)]
    try:
        table = ast.literal_eval(values[-1]) if values else None
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return {}
    return table if _are_sizes(table) else {}


def with_own_names(source: Path, text: str) -> str:
    """The text, in which what is called as a problem's tables is called otherwise. Raises ProblemError."""
    try:
        tree = parse_python(text, str(source))
    except (SyntaxError, ValueError):
        return text  # who reads it next tells why
    for table in _TABLES:
        if any(_binds(node, table) for node in tree.body) and not (table == SIZES and declared_sizes(tree)):
            text = _renamed(source, text, tree, table)
            tree = parse_python(text, str(source))
    return text


def _are_sizes(table: object) -> TypeGuard[dict[str, dict[str, int]]]:
    """Whether it is `{"small": {"batch_size": 16}}`: whole numbers by name, by size."""
    if not isinstance(table, dict) or not table:
        return False
    return all(
        isinstance(size, str)
        and isinstance(extents, dict)
        and all(isinstance(name, str) and type(value) is int for name, value in extents.items())
        for size, extents in table.items()
    )


def _assigns(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == name for one in node.targets)


def _binds(node: ast.stmt, name: str) -> bool:
    """Whether a statement at the top level gives a value to a name."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name == name
    if isinstance(node, ast.Import | ast.ImportFrom):
        return any((one.asname or one.name) == name for one in node.names)
    names = (one for one in ast.walk(node) if isinstance(one, ast.Name) and one.id == name)
    return any(isinstance(one.ctx, ast.Store) for one in names)


def _renamed(source: Path, text: str, tree: ast.Module, name: str) -> str:
    """The text with another name in the place of this one. Raises ProblemError where that is more than a word each."""
    odd = next(_otherwise(tree, name), None)
    if odd is not None:
        raise ProblemError(
            f"{source}:{odd}: {name} is the name of a table that a problem has",
            hint=f"call it otherwise; sizes alone are declared under {SIZES}, such as "
            f'{SIZES} = {{"small": {{"batch_size": 16}}}}',
        )
    taken = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    other = f"{name}_"
    while other in taken:
        other += "_"
    places = [(node.lineno, node.col_offset) for node in ast.walk(tree) if _is_name(node, name)]
    return with_pieces(text, {Piece(line, column, column + len(name)): other for line, column in places})


def _is_name(node: ast.AST, name: str) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and node.id == name


def _otherwise(tree: ast.Module, name: str) -> Iterator[int]:
    """Lines where a name is anything but a word of its own: an argument, a function, within a formatted string."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=found) | ast.ClassDef(name=found) | ast.arg(arg=found) if found == name:
                yield node.lineno
            case ast.Global(names=names) | ast.Nonlocal(names=names) if name in names:
                yield node.lineno
            case ast.alias(name=found, asname=called) if name == (called or found):
                yield node.lineno
            case ast.JoinedStr() if any(_is_name(one, name) for one in ast.walk(node)):
                yield node.lineno  # where in the text, this version of Python does not tell
