"""CUDA source on the page: highlighted lines, two sources side by side, and the lines that were executed most."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

from markupsafe import Markup, escape
from pygments.lexers.c_cpp import CppLexer
from pygments.token import Token, _TokenType

from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import short_name
from kernelblaster.evaluation.results import Evaluation

_WORD = re.compile(r"\w")
CONTEXT = 3
"""Unchanged lines shown around a change."""
AROUND_HOT = 2
"""Lines shown around a hot one."""
HOTTEST_KERNELS = 3
_CLASSES: tuple[tuple[_TokenType, str], ...] = (
    (Token.Comment.Preproc, "p"),
    (Token.Comment.PreprocFile, "s"),
    (Token.Comment, "c"),
    (Token.Keyword.Type, "t"),
    (Token.Keyword, "k"),
    (Token.Literal.String, "s"),
    (Token.Literal.Number, "m"),
    (Token.Name.Function, "f"),
)
_CUDA = re.compile(
    r"__(?:global|device|host|shared|constant|restrict|forceinline|launch_bounds|align|syncthreads|syncwarp)__"
    r"|__(?:syncthreads|syncwarp|launch_bounds|align)\b"
)
_CUDA_TYPE = re.compile(r"(?:__half2?|__nv_bfloat16[2]?|half2?|float[234]|int[234]|uint[234]|dim3|u?int\d+_t)$")
_TURNS = {
    point: f"<U+{point:04X}>" for point in (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}
"""Characters that would have code shown in another order than it is compiled in (Unicode, annex 9)."""
_HOT = re.compile(r"[^\s,:]+:(\d+) (\d+)%")


@lru_cache(maxsize=64)
def highlighted(source: str) -> tuple[Markup, ...]:
    """The lines of a CUDA source as HTML."""
    lines = [""]
    for kind, text in CppLexer(stripnl=False, ensurenl=False).get_tokens(source.translate(_TURNS)):
        name = _class(kind, text)
        for number, part in enumerate(text.split("\n")):
            if number:
                lines.append("")
            if part:
                lines[-1] += f'<i class="{name}">{escape(part)}</i>' if name else str(escape(part))
    return tuple(Markup(line) for line in lines)


def _class(kind: _TokenType, text: str) -> str:
    if _CUDA.fullmatch(text):
        return "k"
    if _CUDA_TYPE.fullmatch(text):
        return "t"
    return next((name for known, name in _CLASSES if kind in known), "")


@dataclass(frozen=True)
class CodeLine:
    """A numbered line; `html` is safe."""

    number: int
    html: Markup


@dataclass(frozen=True)
class DiffRow:
    """Two lines that stand beside each other; one of them may be missing."""

    kind: str
    """`same`, `changed`, `removed` or `added`."""
    left: CodeLine | None
    right: CodeLine | None


@dataclass(frozen=True)
class DiffPart:
    """Rows in a run; `folded` ones are unchanged and out of sight until they are asked for."""

    rows: tuple[DiffRow, ...]
    folded: bool


@dataclass(frozen=True)
class Diff:
    """Two sources side by side."""

    parts: tuple[DiffPart, ...]
    removed: int
    added: int


def side_by_side(before: str, after: str) -> Diff:
    """What became of a source."""
    rows = list(_rows(before, after))
    return Diff(
        parts=tuple(_folded(rows)),
        removed=sum(row.kind != "same" and row.left is not None for row in rows),
        added=sum(row.kind != "same" and row.right is not None for row in rows),
    )


def _rows(before: str, after: str) -> Iterator[DiffRow]:
    # As the lexer has it, which knows one kind of line end.
    before, after = (text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n") for text in (before, after))
    left = [CodeLine(number, html) for number, html in enumerate(highlighted(before), 1)]
    right = [CodeLine(number, html) for number, html in enumerate(highlighted(after), 1)]
    for same, old, new in _blocks(before.split("\n"), after.split("\n")):
        for one, other in zip_longest(left[old], right[new]):
            yield DiffRow("same" if same else _kind(one, other), one, other)


def _blocks(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[bool, slice, slice]]:
    """Stretches of lines that are the same, or not, in both.

    A brace or an empty line between changes is no landmark: rewritten functions would be torn apart at each.
    """
    found = [
        (tag == "equal", [i, j, k, m])
        for tag, i, j, k, m in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    ]
    joined: list[tuple[bool, list[int]]] = []
    for place, (same, (i, j, k, m)) in enumerate(found):
        between = 0 < place < len(found) - 1
        told = not same or not between or any(_WORD.search(line) for line in before[i:j])
        if not (same and told) and joined and not joined[-1][0]:
            joined[-1][1][1::2] = [j, m]
        else:
            joined.append((same and told, [i, j, k, m]))
    for same, (i, j, k, m) in joined:
        yield same, slice(i, j), slice(k, m)


def _kind(left: CodeLine | None, right: CodeLine | None) -> str:
    return "added" if left is None else "removed" if right is None else "changed"


def _folded(rows: Sequence[DiffRow]) -> Iterator[DiffPart]:
    """Long runs of unchanged rows are folded, but for those beside a change."""
    changed = [place for place, row in enumerate(rows) if row.kind != "same"]
    near = {place + step for place in changed for step in range(-CONTEXT, CONTEXT + 1)}
    begin = 0
    for place in range(1, len(rows) + 1):
        if place == len(rows) or (place in near) != (begin in near):
            run = tuple(rows[begin:place])
            yield DiffPart(run, folded=begin not in near and len(run) > 1)
            begin = place


@dataclass(frozen=True)
class HotLine:
    """A line of a listing, with its share of the kernel's warp instructions or nothing."""

    number: int
    html: Markup
    percent: int | None


@dataclass(frozen=True)
class HotKernel:
    """A kernel and its lines with most warp instructions, among those around them; a None stands for lines left out."""

    name: str
    launch: str
    time_us: float | None
    lines: tuple[HotLine | None, ...]


def hot_kernels(evaluation: Evaluation | None, source: str | None) -> tuple[HotKernel, ...]:
    """The longest kernels of a call with their hot lines; none where the profiler does not tell lines."""
    if evaluation is None or evaluation.profile is None or source is None:
        return ()
    listing = highlighted(source)
    found = []
    for kernel in evaluation.profile.longest_first()[:HOTTEST_KERNELS]:
        shares = {int(number): int(percent) for number, percent in _HOT.findall(kernel.notes.get("hot_lines", ""))}
        shares = {number: percent for number, percent in shares.items() if number <= len(listing)}
        if shares:
            duration = kernel.metrics.get(Metric.DURATION)
            grid, block = ("×".join(map(str, shape)) for shape in (kernel.grid, kernel.block))  # noqa: RUF001
            found.append(
                HotKernel(
                    name=short_name(kernel.name),
                    launch=f"<<<{grid}, {block}>>>",
                    time_us=None if duration is None else duration / 1000,
                    lines=tuple(_around(shares, listing)),
                )
            )
    return tuple(found)


def _around(shares: dict[int, int], listing: Sequence[Markup]) -> Iterator[HotLine | None]:
    shown = sorted(
        {
            number
            for hot in shares
            for number in range(max(1, hot - AROUND_HOT), min(len(listing), hot + AROUND_HOT) + 1)
        }
    )
    for place, number in enumerate(shown):
        if place and number != shown[place - 1] + 1:
            yield None
        yield HotLine(number, listing[number - 1], shares.get(number))
