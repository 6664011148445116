"""Tunables: constants of a source whose values a machine tries instead of a model.

    // TUNE BLOCK_M 64 128 192
    #define BLOCK_M 128

The comment declares values; the one `#define` of that name holds the value that the source is written with. A variant
is the whole source with other values in its `#define`s: it can be judged, kept and read like any other source.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from kernelblaster.cuda_source.lexer import TokenKind, directives, tokens

MOST_TUNABLES = 8
MOST_VALUES = 32
"""Of one tunable."""
_DECLARED = re.compile(r"//[ \t]*TUNE[ \t]+([A-Za-z_]\w*)[ \t:=]+([^\n]+)")
_VALUE = re.compile(r"-?\w{1,32}(?:\.\w{1,16})?")
_DEFINED = re.compile(r"#[ \t]*define[ \t]+([A-Za-z_]\w*)[ \t]+(\S+)[ \t]*")


class BadTunable(ValueError):
    """A declaration that cannot be followed; `reason` tells its author what to write instead."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Tunable:
    """A constant and the values that are tried for it.

    Attributes:
        values: in the order of the declaration, the written one among them.
        written: the value that the source has.
        start, end: where that value lies in the source.
    """

    name: str
    values: tuple[str, ...]
    written: str
    start: int
    end: int


@dataclass(frozen=True)
class Variant:
    """A source with one value for each tunable."""

    values: dict[str, str]
    source: str


def tunables(source: str) -> list[Tunable]:
    """What a source declares, in order; empty when it declares nothing. Raises BadTunable."""
    declared: dict[str, tuple[str, ...]] = {}
    for token in tokens(source):
        found = _DECLARED.match(token.spelling) if token.kind is TokenKind.COMMENT else None
        if found is not None:
            declared[found[1]] = _values(found[1], found[2])
    if len(declared) > MOST_TUNABLES:
        raise BadTunable(f"{len(declared)} tunables; declare {MOST_TUNABLES} at most")
    places = _places(source) if declared else {}
    return [_tunable(name, values, places.get(name, [])) for name, values in declared.items()]


def variants(source: str, most: int, seed: int) -> list[Variant]:
    """The source as it is written, then its variants: all combinations, or so many of them drawn by `seed`.

    Raises BadTunable.
    """
    found = tunables(source)
    if not found:
        return []
    written = tuple(one.written for one in found)
    others = [row for row in _rows(found, most, seed) if row != written]
    return [_variant(source, found, row) for row in [written, *others[: most - 1]]]


def _rows(found: list[Tunable], most: int, seed: int) -> Iterator[tuple[str, ...]]:
    """Combinations of values: all in order where they are few, else distinct ones at random."""
    if math.prod(len(one.values) for one in found) <= most:
        yield from itertools.product(*(one.values for one in found))
        return
    random, seen = Random(seed), set[tuple[str, ...]]()
    while len(seen) < most:  # there are more than that
        row = tuple(random.choice(one.values) for one in found)
        if row not in seen:
            seen.add(row)
            yield row


def _variant(source: str, found: list[Tunable], row: tuple[str, ...]) -> Variant:
    text = source
    for one, value in sorted(zip(found, row, strict=True), key=lambda pair: -pair[0].start):
        text = text[: one.start] + value + text[one.end :]
    return Variant({one.name: value for one, value in zip(found, row, strict=True)}, text)


def _values(name: str, text: str) -> tuple[str, ...]:
    values = tuple(dict.fromkeys(part for part in re.split(r"[\s,]+", text) if part))
    unfit = next((value for value in values if not _VALUE.fullmatch(value)), None)
    if unfit is not None:
        raise BadTunable(f"TUNE {name}: {unfit[:40]} is neither a number nor a name")
    if len(values) > MOST_VALUES:
        raise BadTunable(f"TUNE {name}: {len(values)} values; declare {MOST_VALUES} at most")
    return values


def _places(source: str) -> dict[str, list[tuple[int, int, str]]]:
    """Name of each macro that stands for one word -> where its words lie."""
    places: dict[str, list[tuple[int, int, str]]] = {}
    for directive in directives(source):
        found = _DEFINED.match(source, directive.start, directive.end) if directive.name == "define" else None
        if found is not None:
            places.setdefault(found[1], []).append((found.start(2), found.end(2), found[2]))
    return places


def _tunable(name: str, values: tuple[str, ...], places: list[tuple[int, int, str]]) -> Tunable:
    if len(places) != 1:
        count = "no" if not places else str(len(places))
        raise BadTunable(f"TUNE {name}: the source has {count} `#define {name} <value>`; write exactly one")
    start, end, written = places[0]
    return Tunable(name, tuple(dict.fromkeys((*values, written))), written, start, end)
