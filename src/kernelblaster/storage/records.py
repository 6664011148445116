"""Files of JSON lines in which every line is a pydantic model."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from kernelblaster.errors import RecordsError
from kernelblaster.storage.jsonl import complete_lines

Record = TypeVar("Record", bound=BaseModel)


def read_records(path: Path, kind: type[Record]) -> list[Record]:
    """The complete lines of a file, in order; none where there is no file.

    Raises RecordsError, which names the line, where one is not of this kind, and for a directory.
    """
    if path.is_dir():
        raise RecordsError(f"{path} is a directory", hint="give a file of JSON lines, or the name of one to be made")
    records = []
    for line in complete_lines(path.read_bytes()) if path.exists() else ():
        try:
            records.append(kind.model_validate_json(line.data))
        except ValidationError as error:
            raise RecordsError(f"line {line.number} of {path} is no {kind.__name__}", hint="remove the line") from error
    return records


def differing_fields(found: Record, wanted: Record) -> str:
    """The fields in which two records of a kind differ, with both values, in one line."""
    before, after = found.model_dump(mode="json"), wanted.model_dump(mode="json")
    return ", ".join(f"{name} {before[name]!r}, now {after[name]!r}" for name in before if before[name] != after[name])
