"""Problems that a run makes of KernelBench files: each source has a directory, and nothing that was edited is lost.

`source.json` beside the files of such a problem tells what they were made of.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from shlex import quote
from typing import Literal

from pydantic import BaseModel, ValidationError

from kernelblaster.errors import UsageError
from kernelblaster.problems.interchange.kernelbench.importing import import_kernelbench
from kernelblaster.problems.interchange.problem_files import edited_files, write_files
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Problem
from kernelblaster.storage.atomic import write_atomically

SOURCE = "source.json"
_DIGITS = 8
"""Of the SHA-256 of a source's path, in the name of a directory whose plain name another source has."""


class MadeOf(BaseModel):
    """Where the files of a problem come from."""

    format: Literal["kernelblaster-source-1"] = "kernelblaster-source-1"
    source: Path
    sha256: str
    """Of the source as it was last."""

    def is_of(self, source: Path, sha256: str) -> bool:
        """Whether it is the same file, changed or not, or a copy of it."""
        return self.source == source or self.sha256 == sha256


def problem_of_module(source: Path, parent: Path) -> Problem:
    """The problem of a KernelBench file, below `parent`; made again it is the same.

    Raises UsageError where a file of it was edited, ProblemError where the source cannot be a problem.
    """
    with tempfile.TemporaryDirectory() as room:
        made = import_kernelbench(source, Path(room))
        files = {path.name: path.read_text(encoding="utf-8") for path in (made.reference_path, made.driver_path)}
        name = made.directory.name
    told = MadeOf(source=source.resolve(), sha256=_digest(source.read_bytes()))
    directory = parent.resolve() / name
    known = _made_of(directory)
    if known is not None and not known.is_of(told.source, told.sha256):
        directory = directory.with_name(f"{name}-{_digest(str(told.source).encode())[:_DIGITS]}")
    edited = edited_files(directory, files)
    if edited:
        raise UsageError(
            f"{directory} holds {', '.join(edited)}, which was not made of {source} like that",
            hint=f"--problem-dir {quote(str(directory))} searches what was edited; remove it to have it made again",
        )
    write_atomically(directory / SOURCE, told.model_dump_json(indent=1))
    write_files(directory, files)
    return load_problem(directory)


def _made_of(directory: Path) -> MadeOf | None:
    """What is known of a directory; None where nothing is. Raises UsageError for a damaged record."""
    path = directory / SOURCE
    try:
        return MadeOf.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise UsageError(f"{path} is damaged", hint=f"remove {quote(str(directory))} to have it made again") from error


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
