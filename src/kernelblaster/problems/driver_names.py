"""The names by which a `driver.cpp` asks for tensors, sizes and scalars, held against those that there are.

A name that does not exist would be noticed when the driver first runs, in a process that already holds a candidate,
and look like the candidate's fault. Names that are written out are therefore compared before anything is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from kernelblaster.cuda_source.launcher import LAUNCHER, HeadRole, function_heads
from kernelblaster.cuda_source.lexer import blank_comments
from kernelblaster.errors import ProblemError

_USE = re.compile(r'\b\w+\s*\.\s*(?P<kind>input|weight|output|size|scalar)\s*\(\s*"(?P<name>[^"]*)"\s*\)')

_CALL = re.compile(rf"\b{LAUNCHER}\s*\((?P<arguments>[^;]*)\)\s*;")
_ARGUMENT = re.compile(
    r'\w+\s*\.\s*(?P<kind>input|weight|output|size|scalar|weights)\s*\(\s*(?:"(?P<name>[^"]*)")?\s*\)$'
)
_PARAMETER = re.compile(r"\b(?P<name>[A-Za-z_]\w*)$")


@dataclass(frozen=True)
class LauncherArgument:
    """One argument of the launcher: what a driver passes, and the parameter that takes it.

    Attributes:
        kind: `input`, `weight`, `output`, `size`, `scalar`; or `weights`, the pointers of all weights.
        name: of the tensor, size or scalar; empty for `weights`.
        declaration: the parameter as the driver declares it: `int64_t rows`.
        parameter: its name.
    """

    kind: str
    name: str
    declaration: str
    parameter: str


def launcher_arguments(path: Path) -> tuple[LauncherArgument, ...]:
    """What a driver passes to the launcher, in order.

    Raises ProblemError unless it calls it once, with tensors, sizes and scalars by their names.
    """
    driver = _without_comments(path.read_text(encoding="utf-8"))
    heads = [head for head in function_heads(driver) if head.role is HeadRole.DECLARATION]
    calls = [call["arguments"] for call in _CALL.finditer(driver) if "." in call["arguments"]]
    given = [_ARGUMENT.match(one.strip()) for one in calls[0].split(",")] if len(calls) == 1 else []
    parameters = heads[0].parameters if heads else ()
    named = [_PARAMETER.search(one) for one in parameters]
    if not given or len(given) != len(named) or None in given or None in named:
        raise ProblemError(
            f"{path}: what it passes to {LAUNCHER} cannot be told from its text",
            hint='call it once, with arguments such as d.input("x") and d.size("n"), and name its parameters',
        )
    return tuple(
        LauncherArgument(use["kind"], use["name"] or "", declaration, parameter["name"])
        for use, declaration, parameter in zip(given, parameters, named, strict=True)
        if use is not None and parameter is not None
    )


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
