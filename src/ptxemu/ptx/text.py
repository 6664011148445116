"""Files of PTX as text."""

from __future__ import annotations

from pathlib import Path


def read_ptx(path: Path) -> str:
    """A file's text as ptxas reads it: a carriage return ends no line, and with it no comment."""
    return path.read_bytes().decode("utf-8", "replace")
