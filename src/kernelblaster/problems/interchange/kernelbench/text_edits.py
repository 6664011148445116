"""Pieces of a module's text, as `ast` tells where they are, and the text with others in their place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Piece:
    """A piece of one line, in bytes of it."""

    line: int
    begin: int
    end: int


def with_pieces(text: str, others: Mapping[Piece, str]) -> str:
    """The text with something else in the place of pieces that do not overlap, on the lines that it had."""
    lines = text.encode().split(b"\n")
    for piece in sorted(others, reverse=True):
        line = lines[piece.line - 1]
        lines[piece.line - 1] = line[: piece.begin] + others[piece].encode() + line[piece.end :]
    return b"\n".join(lines).decode()
