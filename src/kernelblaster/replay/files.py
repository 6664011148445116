"""Transitions as files of JSON lines: what records that are no run of the search hand over."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from pydantic import ValidationError

from kernelblaster.errors import UsageError
from kernelblaster.replay.transition import Transition
from kernelblaster.storage.bounded_io import read_bounded
from kernelblaster.storage.jsonl import complete_lines

MOST_MIB = 1024


def read_transitions(path: Path) -> list[Transition]:
    """The transitions of a `.jsonl` or `.jsonl.gz` file, one a line.

    Raises UsageError for a file that cannot be read, or a line that lacks what a transition needs.
    """
    number = 0
    try:
        content = read_bounded(path, MOST_MIB)
        found = []
        for line in complete_lines(gzip.decompress(content) if path.suffix == ".gz" else content):
            number = line.number
            found.append(Transition.model_validate_json(line.data))
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path} cannot be read: {error}", hint="give JSON lines of transitions") from error
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the line"
        raise UsageError(
            f"{path}, line {number}: {where}: {first['msg']}",
            hint="complete it from what was measured, or leave it out",
        ) from error
    return found
