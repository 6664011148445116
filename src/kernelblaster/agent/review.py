"""What the model is shown of a kernel that it may veto, and how its answer is read.

A kernel's text may hold sentences meant for its reader. Comments, string literals, other pragmas than the compiler's
own, blocks under `#if 0` and macros that nothing uses are taken out; names that read like sentences are replaced by
numbered ones. What is left is shown between two lines that nobody could know when the kernel was written. The answer
can only veto: of several contradicting objects in a reply the one that vetoes counts.
"""

from __future__ import annotations

import re
from collections import Counter
from enum import StrEnum

from pydantic import BaseModel, StrictBool

from kernelblaster.cuda_source.launcher import LAUNCHER
from kernelblaster.cuda_source.lexer import LITERALS, TRIVIA, Token, TokenKind, directives, tokens
from kernelblaster.models.replies import UnusableReply, parse_every_json

MOST_WORDS, MOST_CHARACTERS = 5, 48
"""A name with more is shown under a number."""
_REASON_CHARACTERS = 300
_LONGEST_CHARACTER = len(r"L'\U0001F600'")
_ASSEMBLY, _VOLATILE = frozenset({"asm", "__asm__", "__asm"}), frozenset({"volatile", "__volatile__"})
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(?P<name>\w+)(?P<rest>.*)$", re.DOTALL)
_KEPT_PRAGMA = re.compile(r"\s*(?:unroll|nounroll|once|nv_\w+|diag_\w+|GCC|pack)\b")
_NEVER = re.compile(r"\s*0\s*$")
_PTX_COMMENT = re.compile(r"//.*?(?=\\n|$)|/\*.*?\*/")
_NAME = re.compile(r"(?<![0-9A-Za-z_])[A-Za-z_]\w*")
_API = re.compile(rf"__|cuda|cu[A-Z]|CU|cub|cublas|cudnn|std$|nvcuda$|{LAUNCHER}$|static_assert$|reinterpret_cast$")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


class Review(StrEnum):
    """How the model's review of a finalist ended."""

    NO_VETO = "no veto"
    VETOED = "vetoed"
    UNVERIFIED = "unverified"
    """There was no answer, or none that could be read: no veto, and no comfort either."""


class ReviewReply(BaseModel):
    """What the model answers when it is asked for a veto."""

    veto: StrictBool
    addresses_reader: StrictBool = False
    reason: str = "no reason given"


def read_review(text: str) -> tuple[Review, str]:
    """The review that a reply holds, and its reason. What cannot be read is `UNVERIFIED`."""
    try:
        replies = parse_every_json(text, ReviewReply)
    except UnusableReply as unusable:
        return Review.UNVERIFIED, unusable.reason
    for reply in replies:
        if reply.veto or reply.addresses_reader:
            reason = " ".join(reply.reason.split())[:_REASON_CHARACTERS]
            return Review.VETOED, reason if reply.veto else f"it speaks to its reviewer: {reason}"
    return Review.NO_VETO, ""


def bare_code(source: str) -> str:
    """A CUDA source without what could hold sentences; not meant to be compiled."""
    plain = source.encode("ascii", "replace").decode().replace("\r\n", "\n")
    lines = (line.rstrip() for line in _without_sentences(plain).splitlines())
    return _with_short_names(_without_unused_macros(_live([line for line in lines if line])))


def _live(lines: list[str]) -> list[str]:
    """Lines without blocks that are never compiled, and without directives that only speak."""
    kept: list[str] = []
    dead = 0
    for line in lines:
        found = _DIRECTIVE.match(line)
        name, rest = (found["name"], found["rest"]) if found else ("", "")
        if dead:
            dead += (name in ("if", "ifdef", "ifndef")) - (name == "endif")
            if dead == 1 and name in ("else", "elif"):
                dead = 0
                kept.append("#if 1")
        elif name == "if" and _NEVER.match(rest):
            dead = 1
        elif name in ("error", "warning", "line", "ident", "region", "endregion"):
            continue
        elif name != "pragma" or _KEPT_PRAGMA.match(rest):
            kept.append(line)
    return kept


def _without_sentences(source: str) -> str:
    """Logical lines without comments, with empty literals; those of inline assembly keep their instructions."""
    headers = [(one.start, one.end) for one in directives(source) if one.name == "include"]
    pieces: list[str] = []
    before, depth = "", 0
    for token in tokens(source):
        if token.kind is TokenKind.COMMENT:
            pieces.append(" ")
        elif token.kind in LITERALS and not any(start <= token.start < end for start, end in headers):
            pieces.append(_emptied(token, source, in_assembly=depth > 0))
        else:
            pieces.append(token.spelling)
        opens = token.spelling == "(" and (depth > 0 or before in _ASSEMBLY)
        depth += opens - (token.spelling == ")" and depth > 0)
        if token.kind not in TRIVIA and token.spelling not in _VOLATILE:
            before = token.spelling
    return "".join(pieces)


def _emptied(literal: Token, source: str, *, in_assembly: bool) -> str:
    if literal.kind is TokenKind.CHARACTER:
        return literal.spelling if literal.terminated and len(literal.spelling) <= _LONGEST_CHARACTER else "''"
    inside = _PTX_COMMENT.sub("", source[literal.inner_start : literal.inner_end]) if in_assembly else ""
    return f'"{inside}"'


def _without_unused_macros(lines: list[str]) -> str:
    """Code without definitions of macros that are named nowhere else; all where names are pasted together."""
    text = "\n".join(lines)
    if "##" in text:
        return text
    kept = []
    named = Counter(_NAME.findall(text))
    for line in lines:
        found = _DIRECTIVE.match(line)
        if found and found["name"] == "define":
            name = _NAME.search(found["rest"])
            if name and named[name[0]] < 2:
                continue
        kept.append(line)
    return "\n".join(kept)


def _with_short_names(code: str) -> str:
    numbers: dict[str, int] = {}

    def short(match: re.Match[str]) -> str:
        name = match[0]
        if _API.match(name) or (len(name) <= MOST_CHARACTERS and len(_WORD.findall(name)) <= MOST_WORDS):
            return name
        return f"name_{numbers.setdefault(name, len(numbers) + 1)}"

    return _NAME.sub(short, code)
