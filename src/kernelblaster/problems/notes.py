"""What is told of a problem beside its files: `notes.json` in its directory, on which nothing measured depends."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from kernelblaster.errors import ProblemError
from kernelblaster.storage.bounded_io import read_source

NAME = "notes.json"


class ProblemNotes(BaseModel):
    """Notes of one problem."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    published: str = ""
    """What is otherwise in KernelBench's form and no mend of `reference.py` tells."""
    instead: str = ""
    """What is otherwise, where the mend that `reference.py` tells does not say it rightly: measurements are kept by
    that file's digest, which correcting it there would change."""
    inert: Mapping[str, str] = {}
    """What a kernel may leave out and be right for any input, as the audit names it -> why nothing reaches it."""


def read_notes(directory: Path) -> ProblemNotes:
    """The notes in a problem's directory; empty ones without a file. Raises ProblemError for one that holds none."""
    path = directory / NAME
    try:
        return ProblemNotes.model_validate_json(read_source(path))
    except FileNotFoundError:
        return ProblemNotes()
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        raise ProblemError(
            f"{path} cannot be read: {' '.join(str(error).split())[:200]}",
            hint='write {"published": "...", "inert": {"relu 2: zero": "why"}}, or remove it',
        ) from error
