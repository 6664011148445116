"""Which judge gave a verdict: a digest of the code that decides verdicts.

Verdicts of different judges may differ, so a refusal is worth looking at again once the judge has changed.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
_DECIDING = ("evaluation", "devices/harness")
"""Folders of the package: what draws, compares and times, and what calls candidates."""
_PIECES_OF_STARTS = "devices/harness/include/kernelblaster/kernels"
"""What starting kernels are made of, and no part of the judge."""
_SUFFIXES = frozenset({".py", ".cpp", ".hpp", ".ld", ".map"})
_DIGITS = 12


@cache
def judge_version() -> str:
    """Twelve hexadecimal digits that change with any file of the judge."""
    state = hashlib.sha256()
    for path in sorted(path for folder in _DECIDING for path in (_PACKAGE / folder).rglob("*")):
        name = path.relative_to(_PACKAGE).as_posix()
        if path.suffix in _SUFFIXES and not name.startswith(_PIECES_OF_STARTS):
            data = path.read_bytes()
            state.update(f"{name} {len(data)}\n".encode())
            state.update(data)
    return state.hexdigest()[:_DIGITS]
