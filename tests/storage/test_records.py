"""Typed lines of a file: whole ones are read, a damaged one is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from kernelblaster.errors import MachineError
from kernelblaster.storage.jsonl import append_line
from kernelblaster.storage.records import differing_fields, read_records


class Row(BaseModel):
    name: str
    size: int


def test_whole_lines_are_read_and_a_torn_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    assert read_records(path, Row) == []
    rows = [Row(name="a", size=1), Row(name="b", size=2)]
    for row in rows:
        append_line(path, row.model_dump_json().encode())
    with path.open("ab") as file:
        file.write(b'{"name": "c"')
    assert read_records(path, Row) == rows


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    append_line(path, Row(name="a", size=1).model_dump_json().encode())
    append_line(path, b'{"name": "b"}')
    with pytest.raises(MachineError, match=r"\b2\b.*Row"):
        read_records(path, Row)


def test_only_fields_that_differ_are_told() -> None:
    told = differing_fields(Row(name="a", size=1), Row(name="a", size=2))
    assert "size" in told
    assert "name" not in told
