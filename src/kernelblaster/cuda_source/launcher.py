"""The launcher: the one function that a `driver.cpp` declares and calls, and that every candidate defines.

    void launch_gpu_implementation(void* output, void* x, int64_t n);

It is an ordinary C++ function that others can link to. Its parameters are those that `driver.cpp` declares: a
candidate repeats them, and may write other pointer types or another spelling of a 64-bit integer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from kernelblaster.cuda_source.lexer import TRIVIA, Token, TokenKind, tokens
from kernelblaster.errors import ProblemError

LAUNCHER = "launch_gpu_implementation"
HIDING = frozenset({"static", "inline", "__inline__", "__forceinline__", "constexpr"})
"""Specifiers under which the launcher gets no symbol that others can link to."""
_SPECIFIERS = HIDING | {"__host__"}
_MANGLED = re.compile(rf"_Z\d+{LAUNCHER}(?![a-z_])")
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


class HeadRole(StrEnum):
    """What a mention of a function with parameters is."""

    DECLARATION = "declaration"
    DEFINITION = "definition"


@dataclass(frozen=True)
class FunctionHead:
    """A declaration or definition of a function in a source, up to its closing parenthesis.

    Attributes:
        specifiers: tokens before the return type: `static`, `inline`, `extern` and the `"C"` behind it, ...
        parameters: as they are written, without comments and default arguments, each on one line.
    """

    name: str
    role: HeadRole
    specifiers: tuple[Token, ...]
    parameters: tuple[str, ...]

    @property
    def declaration(self) -> str:
        """The declaration of a function that returns nothing, with C++ linkage, on one line."""
        return f"void {self.name}({', '.join(self.parameters)});"


def function_heads(source: str, name: str = LAUNCHER) -> Iterator[FunctionHead]:
    """Declarations and definitions of a function in a source, in order. Calls are none."""
    if name not in source and "\\" not in source:
        return  # no splice can divide the name: nothing to look for
    every = list(tokens(source))
    seen = [index for index, token in enumerate(every) if token.kind not in TRIVIA]
    for at, index in enumerate(seen):
        if every[index].kind is not TokenKind.NAME or every[index].spelling != name:
            continue
        closing = _closing(every, seen, at + 1, name)
        role = None if closing is None else _role(every, seen, at, closing)
        if closing is None or role is None:
            continue
        inside = every[seen[at + 1] + 1 : seen[closing]]
        yield FunctionHead(name, role, _specifiers([every[one] for one in seen[:at]]), tuple(_parameters(inside)))


@lru_cache(maxsize=256)
def find_declaration(driver: str) -> str | None:
    """The launcher's declaration in a `driver.cpp`, on one line without default arguments; None where there is none."""
    declared = (head for head in function_heads(driver) if head.role is HeadRole.DECLARATION)
    return next((head.declaration for head in declared), None)


def launcher_declaration(driver: str) -> str:
    """As `find_declaration`. Raises ProblemError when there is none: then the driver relies on some other header."""
    found = find_declaration(driver)
    if found is None:
        raise ProblemError(
            f"driver.cpp declares no {LAUNCHER}", hint=f"add `void {LAUNCHER}(...);` with its parameters above the call"
        )
    return found


@lru_cache(maxsize=32)
def defines_launcher(source: str) -> bool:
    """Whether a source defines the launcher, be it with the right parameters or not."""
    return any(head.role is HeadRole.DEFINITION for head in function_heads(source))


def with_visible_launcher(source: str) -> str:
    """The source with an `inline` or `static` launcher made visible to the linker. Positions stay."""
    hiding = [token for head in function_heads(source) for token in head.specifiers if token.spelling in HIDING]
    return _replaced(source, dict.fromkeys(hiding, ""))


def with_cxx_linkage(source: str) -> str:
    """The source with a launcher of C++ linkage: `extern "C"` before it goes, around it becomes `extern "C++"`.

    Lines stay where they are.
    """
    heads = list(function_heads(source))
    changes = {token: "" for head in heads for token in head.specifiers if token.spelling in ("extern", '"C"')}
    if heads:
        every = [token for token in tokens(source) if token.kind not in TRIVIA]
        for first, second, third in zip(every, every[1:], every[2:], strict=False):
            if (first.spelling, second.spelling, third.spelling) == ("extern", '"C"', "{"):
                changes[second] = '"C++"'
    return _replaced(source, changes)


def names_launcher(symbol: str) -> bool:
    """Whether a mangled symbol is the launcher's, in whatever namespace and with whatever parameters."""
    return LAUNCHER in symbol


def is_global_launcher(symbol: str) -> bool:
    """Whether a mangled symbol is that of a C++ launcher in no namespace."""
    return _MANGLED.match(symbol) is not None


def _closing(every: Sequence[Token], seen: Sequence[int], at: int, name: str) -> int | None:
    """Which of the tokens closes the parenthesis that the token `at` opens; None when it opens none.

    What cannot lie between parameters ends the search, so that many mentions are not looked through many times.
    """
    if at >= len(seen) or every[seen[at]].spelling != "(":
        return None
    depth = 0
    for place in range(at, len(seen)):
        spelling = every[seen[place]].spelling
        depth += (spelling == "(") - (spelling == ")")
        if depth == 0:
            return place
        if spelling in (";", name):
            return None
    return None


def _role(every: Sequence[Token], seen: Sequence[int], at: int, closing: int) -> HeadRole | None:
    following = [every[index].spelling for index in seen[closing + 1 : closing + 3]]
    if following[:1] == ["noexcept"]:
        del following[0]
    if following[:1] == ["{"]:
        return HeadRole.DEFINITION
    declared = following[:1] == [";"] and at > 0 and every[seen[at - 1]].spelling == "void"
    return HeadRole.DECLARATION if declared else None


def _specifiers(before: Sequence[Token]) -> tuple[Token, ...]:
    """Specifiers at the end of the tokens before the launcher's name, whose last is its return type."""
    start = len(before) - 1
    while start > 0:
        token = before[start - 1]
        if token.spelling in _SPECIFIERS:
            start -= 1
        elif token.spelling == '"C"' and start > 1 and before[start - 2].spelling == "extern":
            start -= 2
        else:
            break
    return tuple(before[start:-1])


def _parameters(inside: Sequence[Token]) -> Iterator[str]:
    """Parameters between the parentheses, without comments and default arguments."""
    depth, default = 0, False
    words: list[str] = []
    for token in inside:
        depth += (token.spelling in _OPENING) - (token.spelling in _CLOSING)
        if token.spelling == "," and depth == 0:
            yield " ".join("".join(words).split())
            words, default = [], False
        elif token.spelling == "=" and depth == 0:
            default = True
        elif not default:
            words.append(" " if token.kind in TRIVIA else token.spelling)
    if "".join(words).strip():
        yield " ".join("".join(words).split())


def _replaced(source: str, changes: dict[Token, str]) -> str:
    """The source with tokens replaced; an empty replacement blanks its token."""
    pieces, position = [], 0
    for token, replacement in sorted(changes.items(), key=lambda change: change[0].start):
        old = source[token.start : token.end]
        blank = re.sub(r"[^\r\n\\]", " ", old) if "\n" in old else " " * len(old)
        pieces += [source[position : token.start], replacement or blank]
        position = token.end
    return "".join([*pieces, source[position:]])
