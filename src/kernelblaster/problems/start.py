"""The starting kernel of a problem as one self-contained file.

An `init.cu` may include the shared pieces `<kernelblaster/kernels/*.cuh>`, so that it shows its own problem alone. What
is judged, shown to models and rewritten by them is the text that this module makes of it: each of these includes is
replaced by those pieces of the header that are used. A piece is what stands at column 0 between two empty lines: one
function, type or constant with its comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.errors import ProblemError
from kernelblaster.paths import harness_include_dir
from kernelblaster.problems.problem import Problem
from kernelblaster.storage.bounded_io import read_source

_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<(?P<name>[^>]+)>[^\n]*\n?", re.MULTILINE)
SHARED_PIECES = "kernelblaster/kernels/"
"""Where the headers lie below the include directory."""
_BREAK = re.compile(r"\n(?:[ \t]*\n)+(?=[^\s})])")
_WORD = re.compile(r"[A-Za-z_]\w*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TYPE = re.compile(r"^(?:struct|class|enum class|enum|using)\s+(?P<name>\w+)", re.MULTILINE)
_VALUE = re.compile(r"^(?:static |inline )*(?:constexpr|const)\s[\w:*\s]*?(?P<name>\w+)\s*(?:=|\[|\{)", re.MULTILINE)
_FUNCTION = re.compile(r"^[A-Za-z_](?:[^(;={}\n]|__launch_bounds__\([^)]*\))*?(?P<name>\w+)\(", re.MULTILINE)


def read_start(problem: Problem) -> str:
    """The starting kernel, self-contained.

    Raises ProblemError when there is none, it cannot be read or it includes a shared piece that does not exist.
    """
    if not problem.has_start:
        raise ProblemError(
            f"{problem.directory} has no {problem.init_file}", hint="write one, or have `run` search: a model writes it"
        )
    try:
        return self_contained(read_source(problem.init_path))
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemError(f"{problem.init_path} cannot be read: {error}", hint="restore the problem") from error


def self_contained(source: str) -> str:
    """A kernel's text with the shared pieces that it uses in the place of their includes. Raises ProblemError."""
    if SHARED_PIECES not in source:
        return source
    own = _INCLUDE.sub("", source)
    headers: dict[str, str] = {}
    system: dict[str, None] = {}
    for name in _included(source):
        _collect(name, headers, system)
    pieces = [piece for text in headers.values() for piece in _pieces(text)]
    used = _used(own, pieces)
    includes = "".join(f"#include <{name}>\n" for name in system)
    first, rest = _head(own)
    return f"{first}{includes}\n" + "".join(f"{piece.text}\n\n" for piece in used) + rest.lstrip("\n")


@dataclass(frozen=True)
class _Piece:
    text: str
    defines: frozenset[str]
    mentions: frozenset[str]


def _included(text: str) -> Iterator[str]:
    for match in _INCLUDE.finditer(text):
        yield match["name"]


def _collect(name: str, headers: dict[str, str], system: dict[str, None]) -> None:
    """Add a header, after those that it includes."""
    if not name.startswith(SHARED_PIECES):
        system.setdefault(name)
        return
    if name in headers:
        return
    path: Path = harness_include_dir() / name
    if path.parent != harness_include_dir() / SHARED_PIECES or not path.is_file():
        known = ", ".join(sorted(one.name for one in (harness_include_dir() / SHARED_PIECES).glob("*.cuh")))
        raise ProblemError(f"there is no header <{name}>", hint=f"shared pieces are in {known}")
    text = path.read_text(encoding="utf-8")
    for inner in _included(text):
        _collect(inner, headers, system)
    headers[name] = _INCLUDE.sub("", text.replace("#pragma once\n", ""))


def _pieces(header: str) -> Iterator[_Piece]:
    for text in _BREAK.split(header.strip("\n")):
        code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//"))
        if not code.strip():
            continue  # what a header says of itself
        found = (*_TYPE.finditer(code), *_VALUE.finditer(code), *_FUNCTION.finditer(code))
        yield _Piece(text.strip("\n"), frozenset(match["name"] for match in found), frozenset(_WORD.findall(code)))


def _used(own: str, pieces: list[_Piece]) -> list[_Piece]:
    """Pieces that a text mentions, or that such pieces mention, in the order of the headers."""
    wanted, kept = set(_WORD.findall(_COMMENT.sub(" ", own))), [False] * len(pieces)
    changed = True
    while changed:
        changed = False
        for place, piece in enumerate(pieces):
            if not kept[place] and piece.defines & wanted:
                kept[place] = changed = True
                wanted |= piece.mentions
    return [piece for place, piece in enumerate(pieces) if kept[place]]


def _head(own: str) -> tuple[str, str]:
    """The comment that a file begins with, and the rest."""
    lines = own.splitlines(keepends=True)
    count = next((at for at, line in enumerate(lines) if not line.startswith("//")), len(lines))
    return "".join(lines[:count]), "".join(lines[count:])
