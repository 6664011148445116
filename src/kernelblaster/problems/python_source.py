"""Parsing the Python text of problems, and the literals that a `reference.py` declares."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from traceback import extract_tb

from kernelblaster.errors import ProblemError

_PARSER = Lock()
"""CPython 3.11 counts the depth of its parser once for all threads, and fails where two of them parse at a time."""


def parse_python(text: str, filename: str = "<text>") -> ast.Module:
    """The syntax tree of a module. Safe in any number of threads. Raises SyntaxError and ValueError (a null byte)."""
    with _PARSER:
        return ast.parse(text, filename=filename)


@dataclass(frozen=True)
class Declarations:
    """Literals that a module assigns to names at its top level.

    Attributes:
        path: of the file, for messages.
        values: name -> value.
        lines: name -> line of the value, from 1.
    """

    path: Path
    values: Mapping[str, object]
    lines: Mapping[str, int]

    def get(self, name: str, default: object) -> object:
        """The declared value, or the default."""
        return self.values.get(name, default)

    def place(self, name: str) -> str:
        """`DIR/reference.py:12`, or the file alone where the name is not declared."""
        return f"{self.path}:{self.lines[name]}" if name in self.lines else str(self.path)


def read_declarations(path: Path, text: str, names: Collection[str]) -> Declarations:
    """The module-level assignments to `names`, without executing anything.

    Raises ProblemError when the text is not Python, or a value is no literal.
    """
    values: dict[str, object] = {}
    lines: dict[str, int] = {}
    for name, _, value in _assignments(path, text, names):
        values[name] = _literal(path, name, value)
        lines[name] = value.lineno
    return Declarations(path, values, lines)


def without_assignments(path: Path, text: str, names: Collection[str]) -> str:
    """The text without what assigns to `names` at the top level. Line ends must be `\\n`.

    Raises ProblemError when it is not Python.
    """
    lines = text.encode().split(b"\n")
    for _, statement, _ in reversed(list(_assignments(path, text, names))):
        first, last = statement.lineno - 1, (statement.end_lineno or statement.lineno) - 1
        left = lines[first][: statement.col_offset] + lines[last][statement.end_col_offset :]
        lines[first : last + 1] = [left] if left.strip() else []
    return b"\n".join(lines).decode()


def _assignments(path: Path, text: str, names: Collection[str]) -> Iterator[tuple[str, ast.stmt, ast.expr]]:
    return (found for found in _all_assignments(path, text) if found[0] in names)


@lru_cache(maxsize=1024)
def _all_assignments(path: Path, text: str) -> tuple[tuple[str, ast.stmt, ast.expr], ...]:
    """Name, statement and value of what a module assigns to names at its top level.

    Kept, for a data set's files are asked for their declarations and then for a digest of each size.
    """
    return tuple(_parsed_assignments(path, text))


def _parsed_assignments(path: Path, text: str) -> Iterator[tuple[str, ast.stmt, ast.expr]]:
    try:
        body = parse_python(text, filename=str(path)).body
    except SyntaxError as error:
        raise ProblemError(f"{path}:{error.lineno}: not valid Python: {error.msg}", hint="correct the file") from error
    except ValueError as error:
        raise ProblemError(f"{path} is not valid Python: {error}", hint="correct the file") from error
    for statement in body:
        if isinstance(statement, ast.Assign):
            targets, value = statement.targets, statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets, value = [statement.target], statement.value
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name):
                yield target.id, statement, value


def _literal(path: Path, name: str, value: ast.expr) -> object:
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise ProblemError(
            f"{path}:{value.lineno}: {name} is not a literal",
            hint="write its numbers out: the file is not executed to read them",
        ) from None


def place_in(path: Path, error: BaseException) -> str:
    """`DIR/reference.py:12`, the innermost line of a file that an exception passed; the file where it passed none."""
    if isinstance(error, SyntaxError):
        line = error.lineno
    else:
        lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = lines[-1] if lines else None
    return f"{path}:{line}" if line else str(path)
