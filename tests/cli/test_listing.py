"""Long lists: one line each, cut where a terminal is narrow and whole where they go on into a pipe."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.cli.listing import NARROWEST, listing

HEADER = ("name", "time", "sizes")
cells = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=60)
rows = st.lists(st.tuples(cells, st.integers(0, 10**6).map(str), cells), min_size=1, max_size=5)


@given(rows, st.integers(40, 200))
def test_a_line_fits_and_numbers_stay_whole(rows: list[tuple[str, str, str]], width: int) -> None:
    head, *lines = listing(HEADER, rows, width, whole=(1,))
    assert len(lines) == len(rows)
    assert max(map(len, [head, *lines])) <= width
    assert all(time in line for (_, time, _), line in zip(rows, lines, strict=True))


@given(rows)
def test_a_pipe_gets_whole_cells_in_columns(rows: list[tuple[str, str, str]]) -> None:
    head, *lines = listing(HEADER, rows, None)
    assert all(cell in line for row, line in zip(rows, lines, strict=True) for cell in row)
    place = head.index("time")
    assert [line[place:].split("  ")[0] for line in lines] == [row[1] for row in rows]


def test_the_widest_column_gives_way_first() -> None:
    _, line = listing(("a", "b"), [("short", "x" * 90)], 40)
    assert line == f"short  {'x' * 32}…"
    narrow = list(listing(("a", "b"), [("y" * 50, "x" * 90)], 3))
    assert len(narrow[1]) == 2 * NARROWEST + 2, "columns keep a little, however narrow the terminal"


def test_an_empty_list_has_a_header() -> None:
    assert list(listing(HEADER, [], None)) == ["name  time  sizes"]
    assert list(listing(HEADER, [], 80)) == ["name  time  sizes"]
