"""`search.json`: which search a directory holds, so that neither another problem's nor an earlier one is continued.

Level, number and name do not tell a problem from its changed copy; the contents of its files do.
"""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path

from pydantic import BaseModel, ValidationError

from kernelblaster.errors import UsageError
from kernelblaster.problems.problem import Problem
from kernelblaster.problems.start import SHARED_PIECES, read_start
from kernelblaster.storage.atomic import write_atomically

SEARCH = "search.json"


class SearchRecord(BaseModel):
    """One search of one problem, over all its starts."""

    format: str = "kernelblaster-search-1"
    name: str
    """With a slot it identifies a transition; a search begun anew has another one."""
    problem: Path
    """The directory of the problem."""
    files: dict[str, str]
    """File of the problem -> SHA-256 of its content."""
    archive: bool = False
    """Whether its replies are handed out from an archive; searches of earlier versions are chains to their end."""


def open_search(directory: Path, problem: Problem, run: str, *, archive: bool) -> SearchRecord:
    """The search in `directory`, begun when there is none: then with an archive or without. Raises UsageError."""
    known = find_search(directory)
    if known is None:
        name = f"{run}.{uuid.uuid4().hex[:6]}"
        known = SearchRecord(name=name, problem=problem.directory, files=_digests(problem), archive=archive)
        write_atomically(directory / SEARCH, known.model_dump_json(indent=1))
    return known


def find_search(directory: Path) -> SearchRecord | None:
    """The search in `directory`; None when none has begun. Raises UsageError when its record is damaged."""
    path = directory / SEARCH
    try:
        return SearchRecord.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise UsageError(f"{path} is damaged", hint="--no-resume sets that search aside and begins anew") from error


def check_search(directory: Path, problem: Problem) -> None:
    """Raise UsageError when `directory` holds a search of other files than the problem has now."""
    search = find_search(directory)
    if search is None:
        return
    found = _digests(problem)
    changed = sorted(name for name in search.files.keys() | found.keys() if search.files.get(name) != found.get(name))
    if changed:
        raise UsageError(
            f"{directory} holds a search of {search.problem} with another {', another '.join(changed)} "
            f"than {problem.directory} has now",
            hint="use another --experiment, or --no-resume to set that search aside",
        )


def _digests(problem: Problem) -> dict[str, str]:
    paths = (problem.reference_path, problem.init_path, problem.driver_path)
    found = {path.name: path.read_bytes() for path in paths if path.exists()}
    start = found.get(problem.init_file)
    if start is not None and SHARED_PIECES.encode() in start:  # the pieces that it uses are its own, too
        found[problem.init_file] = read_start(problem).encode()
    return {name: hashlib.sha256(content).hexdigest() for name, content in found.items()}
