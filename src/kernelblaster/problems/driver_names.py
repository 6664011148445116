"""The names by which a `driver.cpp` asks for tensors, sizes and scalars, held against those that there are.

A name that does not exist would be noticed when the driver first runs, in a process that already holds a candidate,
and look like the candidate's fault. Names that are written out are therefore compared before anything is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path

from kernelblaster.cuda_source.lexer import blank_comments
from kernelblaster.errors import ProblemError

_USE = re.compile(r'\b\w+\s*\.\s*(?P<kind>input|weight|output|size|scalar)\s*\(\s*"(?P<name>[^"]*)"\s*\)')


def check_names(path: Path, driver: str, declared: Mapping[str, Collection[str]]) -> None:
    """Compare what a driver asks for with what is declared.

    Args:
        path: of the driver, for the message.
        driver: its text.
        declared: names by kind (`input`, `weight`, `output`, `size`, `scalar`); other kinds are not looked at.

    Raises:
        ProblemError: it asks for something else; names file, line and what is declared.
    """
    text = _without_comments(driver)
    for use in _USE.finditer(text):
        kind, name = use["kind"], use["name"]
        if kind not in declared or name in declared[kind]:
            continue
        line = text.count("\n", 0, use.start()) + 1
        near = get_close_matches(name, declared[kind], n=1)
        known = f"declared there: {', '.join(sorted(declared[kind])) or 'none'}"
        raise ProblemError(
            f"{path}:{line}: asks for {kind} {name!r}, which reference.py lacks",
            hint=f"did you mean {near[0]!r}? {known}" if near else known,
        )


def _without_comments(driver: str) -> str:
    """The driver with comments blanked; as it is where it cannot hold one, which lists of hundreds of problems feel."""
    return blank_comments(driver) if "/" in driver.replace("<kernelblaster/", "") else driver
