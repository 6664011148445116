"""Replies that hold edits of a known file instead of a whole one.

An edit names lines of the file and what takes their place:

    <<<<<<< SEARCH
    lines of the file, to the character
    =======
    lines in their place
    >>>>>>> REPLACE

All edits of a reply refer to the file as it is before the first of them, so that their order does not matter. The lines
searched for must occur exactly once in it, and no two edits may touch the same line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from kernelblaster.cuda_source.launcher import defines_launcher
from kernelblaster.models.replies import CandidateReply, UnusableReply, after_thoughts, parse_reply, stated_speedup

_SEARCH = re.compile(r"^\s*<{5,9} ?SEARCH\s*$")
_DIVIDER = re.compile(r"^\s*={5,9}\s*$")
_REPLACE = re.compile(r"^\s*>{5,9} ?REPLACE\s*$")
_LINE_SHOWN = 80


class InapplicableEdits(UnusableReply):
    """Edits that are not well-formed, or do not apply; `reason` tells the model which, and why."""


@dataclass(frozen=True)
class Edit:
    """One replacement of whole lines, neither side with its last line end."""

    search: tuple[str, ...]
    replace: tuple[str, ...]


@dataclass(frozen=True)
class _EditPlace:
    """Of an edit in a file: its lines from `first` to before `end`, from 0."""

    first: int
    end: int
    number: int
    edit: Edit


def parse_candidate(text: str, base: str | None) -> CandidateReply:
    """The candidate in a reply: a whole file, or `base` with the reply's edits applied.

    A block that defines the launcher and holds no edit is a whole file and comes before edits. Without a `base`, edits
    are no candidate. Raises UnusableReply; InapplicableEdits for edits that cannot be applied.
    """
    answer = after_thoughts(text)
    if base is None or not any(_SEARCH.match(line) for line in answer.split("\n")):
        return parse_reply(text)
    outside, edits = parse_edits(answer)
    return _whole_file(outside) or CandidateReply(
        source=apply_edits(base, edits),
        expected_speedup=stated_speedup(outside),
        edits=len(edits),
        written=sum(len(line) + 1 for edit in edits for line in (*edit.search, *edit.replace)),
    )


def _whole_file(outside: str) -> CandidateReply | None:
    """What stands beside edits, where it is a whole file and not a snippet."""
    try:
        found = parse_reply(outside)
    except UnusableReply:
        return None
    return found if defines_launcher(found.source) else None


def parse_edits(text: str) -> tuple[str, list[Edit]]:
    """The text without its edits, and the edits in order. Raises InapplicableEdits where one is not whole."""
    outside: list[str] = []
    edits: list[Edit] = []
    search: list[str] = []
    replace: list[str] = []
    current = outside
    for line in text.split("\n"):
        if _SEARCH.match(line):
            if current is not outside:
                raise InapplicableEdits(f"edit {len(edits) + 1} is not closed by `>>>>>>> REPLACE`")
            search, replace = [], []
            current = search
        elif current is search and _DIVIDER.match(line):
            current = replace
        elif current is replace and _REPLACE.match(line):
            edits.append(Edit(tuple(search), tuple(replace)))
            current = outside
        else:
            current.append(line)
    if current is not outside:
        raise InapplicableEdits(f"edit {len(edits) + 1} is cut off: it lacks `=======` or `>>>>>>> REPLACE`")
    return "\n".join(outside), edits


def apply_edits(base: str, edits: list[Edit]) -> str:
    """`base` with every edit applied, with a line end at its end. Raises InapplicableEdits naming the first misfit."""
    lines = base.rstrip("\n").split("\n")
    places = sorted((_place(lines, number, edit) for number, edit in enumerate(edits, 1)), key=lambda one: one.first)
    for before, after in pairwise(places):
        if after.first < before.end:
            raise InapplicableEdits(f"edits {before.number} and {after.number} change the same lines; make them one")
    for place in reversed(places):
        lines[place.first : place.end] = place.edit.replace
    return "\n".join(lines) + "\n"


def _place(lines: list[str], number: int, edit: Edit) -> _EditPlace:
    """Where the lines that an edit searches for are; blanks at the ends of lines do not count."""
    wanted = [line.rstrip() for line in edit.search]
    if not any(wanted):
        raise InapplicableEdits(f"edit {number} searches for nothing; quote the lines beside which it adds some")
    bare = [line.rstrip() for line in lines]
    size = len(wanted)
    found = [first for first in range(len(bare) - size + 1) if bare[first : first + size] == wanted]
    if len(found) == 1:
        return _EditPlace(found[0], found[0] + size, number, edit)
    if found:
        where = ", ".join(str(first + 1) for first in found[:5])
        raise InapplicableEdits(
            f"edit {number} fits {len(found)} places (lines {where}); quote more lines, so that one is left"
        )
    raise InapplicableEdits(f"edit {number} is not in the file: {_misfit(bare, wanted)}; quote its lines exactly")


def _misfit(bare: list[str], wanted: list[str]) -> str:
    """The first line by which an edit departs from the place that it fits best."""
    agreeing = 0
    for first in (at for at, line in enumerate(bare) if line == wanted[0]):
        fitting = 0
        while fitting < len(wanted) and first + fitting < len(bare) and bare[first + fitting] == wanted[fitting]:
            fitting += 1
        agreeing = max(agreeing, fitting)
    return f"no line `{wanted[agreeing].strip()[:_LINE_SHOWN]}` there"
