"""The part of a CUDA source that teaches: one kernel and the definitions that it uses, within a number of characters.

An excerpt is for reading and does not compile. Left out of it are host code, directives but macros, and what the kernel
does not use; long lists of PTX operands are shortened, indentation is one blank per level. Definitions that do not fit
keep their first line; of a kernel that does not fit, the last lines go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kernelblaster.cuda_source.lexer import TokenKind, directives, significant_tokens

_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_TYPES = frozenset({"struct", "class", "union", "enum", "using"})
_OPERANDS = re.compile(r'%(\d+)(?:[",\s]+%\d+){6,}[",\s]+%(\d+)')
"""Seven or more operands of an asm statement in a row, over string literals."""
_PRODUCT = re.compile(r"\bmma\.sync|\bmma_async")
_TRANSPARENT = re.compile(r'\s*(?:inline\s+)?(?:namespace\b[^({]*|extern\s*"C"\s*)$')
"""What opens a brace that encloses definitions."""
_KERNEL_SHARE = 0.65
"""Of an excerpt that holds other definitions, for the kernel at most."""


@dataclass(frozen=True)
class _Definition:
    text: str
    names: frozenset[str]
    used: frozenset[str]
    function: str = ""

    @property
    def kernel(self) -> bool:
        return bool(self.function) and "__global__" in self.used

    @property
    def head(self) -> str:
        """What is before the body."""
        return f"{' '.join(self.text.partition('{')[0].split())}{{ ... }}"


def kernel_excerpt(source: str, hottest: str, most: int) -> str | None:
    """The kernel that a profile calls `hottest`, and what it uses, in at most `most` characters.

    Args:
        source: without comments.
        hottest: as a profiler prints it: with namespaces, template arguments and parameters, its end cut off or not. Of
            a source without that kernel the longest one is taken.
        most: characters of the excerpt.

    None for a source without a kernel.
    """
    definitions = list(_definitions(source))
    kernels = [one for one in definitions if one.kernel]
    if not kernels:
        return None
    named = [one for one in kernels if re.search(rf"\b{re.escape(one.function)}\b", hottest)]
    kernel = max(named or kernels, key=lambda one: len(one.text))
    needed = _needed(kernel, definitions)
    own = _condensed(kernel.text)
    if len(own) > (share := int(most * _KERNEL_SHARE if needed else most)):
        own = _cut(own, share)
    shown = {id(kernel): own}
    left = most - len(own)
    # Tensor cores first, then constants, then the shortest: of a given room, the most definitions.
    for one in sorted(needed, key=lambda one: (not _PRODUCT.search(one.text), bool(one.function), len(one.text))):
        text = _condensed(one.text)
        if len(text) + 1 > left and one.function:
            text = one.head
        if len(text) + 1 <= left:
            shown[id(one)] = text
            left -= len(text) + 1
    return "\n".join(shown[id(one)] for one in definitions if id(one) in shown)


def _needed(kernel: _Definition, definitions: list[_Definition]) -> list[_Definition]:
    """What the kernel uses, and what that uses, without other kernels."""
    needed: list[_Definition] = []
    wanted = [kernel]
    while wanted:
        used = wanted.pop().used
        for one in definitions:
            if one is not kernel and not one.kernel and one not in needed and one.names & used:
                needed.append(one)
                wanted.append(one)
    return needed


def _definitions(source: str) -> Iterator[_Definition]:
    """Macros, constants, types and functions at the level of namespaces, in order."""
    macros = [one for one in directives(source) if one.name == "define"]
    code = list(source)
    for directive in directives(source):
        code[directive.start : directive.end] = " " * (directive.end - directive.start)
    found = [(one.start, _macro(source[one.start : one.end])) for one in macros]
    found += _code("".join(code))
    return (definition for _, definition in sorted(found, key=lambda pair: pair[0]))


def _macro(text: str) -> _Definition:
    names = [token.spelling for token in significant_tokens(text) if token.kind is TokenKind.NAME]
    return _Definition(text, frozenset(names[1:2]), frozenset(names[2:]))


def _code(text: str) -> list[tuple[int, _Definition]]:
    """Definitions of a text without directives, each with where it begins."""
    found: list[tuple[int, _Definition]] = []
    depth, start = 0, 0
    for token in significant_tokens(text):
        ends = False
        if token.spelling in _OPENING:
            if depth == 0 and _TRANSPARENT.match(text[start : token.start]):
                start = token.end
                continue
            depth += 1
        elif token.spelling in _CLOSING:
            if depth == 0:
                start = token.end
                continue
            depth -= 1
            ends = depth == 0 and token.spelling == "}" and bool(_function(text[start : token.end]))
        if ends or (depth == 0 and token.spelling == ";"):
            body = text[start : token.end]
            if body.strip(" ;\n"):
                found.append((start, _definition(body.strip("\n"))))
            start = token.end
    return found


def _definition(text: str) -> _Definition:
    function = _function(text)
    names = frozenset(token.spelling for token in significant_tokens(text) if token.kind is TokenKind.NAME)
    defined = frozenset({function}) if function else _defined(text)
    return _Definition(text, defined, names, function)


def _function(text: str) -> str:
    """The name of the function that a text defines; empty where it defines none."""
    name, last, depth = "", "", 0
    for token in significant_tokens(text):
        if token.spelling == "(" and depth == 0 and last.isidentifier():
            name = last
        if token.spelling == "{" and depth == 0:
            return name
        if token.spelling in ("=", ";") and depth == 0:
            return ""
        depth += (token.spelling in "([") - (token.spelling in ")]")
        last = token.spelling
    return ""


def _defined(text: str) -> frozenset[str]:
    """Names that a declaration without a function body defines."""
    spelled = [token.spelling for token in significant_tokens(text)]
    if spelled[0] == "typedef":
        return frozenset(spelled[-2:-1])
    around = zip(["", *spelled], spelled, [*spelled[1:], ""], strict=False)
    return frozenset(
        name for before, name, after in around if name.isidentifier() and (after in ("=", "[") or before in _TYPES)
    )


def _condensed(text: str) -> str:
    """The text with one blank of indentation per level of four, and long runs of operands shortened."""
    lines = [line.rstrip() for line in text.strip("\n").split("\n") if line.strip()]
    bare = [" " * ((len(line) - len(line.lstrip())) // 4) + line.lstrip() for line in lines]
    return _OPERANDS.sub(r"%\1, ..., %\2", "\n".join(bare))


def _cut(text: str, most: int) -> str:
    kept = text[:most].rpartition("\n")[0]
    note = f"\n// ({text.count(chr(10)) - kept.count(chr(10))} more lines)"
    while kept and len(kept) + len(note) > most:
        kept = kept.rpartition("\n")[0]
    return kept + note
