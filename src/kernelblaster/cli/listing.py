"""Long lists in columns, one line each: what `rich` would take half a second to lay out, and would fold."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

GAP = "  "
NARROWEST = 8
"""Columns that a cell keeps, however narrow the terminal."""


def listing(
    header: Sequence[str], rows: Sequence[Sequence[str]], width: int | None, whole: Collection[int] = ()
) -> Iterator[str]:
    """Header and rows, aligned.

    Args:
        header: of the columns.
        rows: as many cells each.
        width: of the terminal: the widest columns are cut until a line fits; None for whole cells, as in a pipe.
        whole: numbers of columns whose cells are not cut, from 0; their headers may be.
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    if width is not None:
        cells = [max(map(len, column), default=0) for column in zip(*rows, strict=True)] or widths
        least = [max(cells[n], NARROWEST) if n in whole else NARROWEST for n in range(len(widths))]
        widths = _fitting(widths, least, width - len(GAP) * (len(widths) - 1))
    for row in (header, *rows):
        yield GAP.join(_cell(text, room) for text, room in zip(row, widths, strict=True)).rstrip()


def _fitting(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Widths in `room` columns all together, if their least allow that: the widest that still can gives way."""
    fitting = list(widths)
    while sum(fitting) > room:
        able = [n for n, found in enumerate(fitting) if found > least[n]]
        if not able:
            break
        fitting[max(able, key=fitting.__getitem__)] -= 1
    return fitting


def _cell(text: str, room: int) -> str:
    return text.ljust(room) if len(text) <= room else f"{text[: room - 1]}…"
