"""Parsing the Python text of problems."""

from __future__ import annotations

import ast
from threading import Lock

_PARSER = Lock()
"""CPython 3.11 counts the depth of its parser once for all threads, and fails where two of them parse at a time."""


def parse_python(text: str, filename: str = "<text>") -> ast.Module:
    """The syntax tree of a module. Safe in any number of threads. Raises SyntaxError and ValueError (a null byte)."""
    with _PARSER:
        return ast.parse(text, filename=filename)
