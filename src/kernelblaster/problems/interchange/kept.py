"""What was imported, as it came: `exchange/` beside the files of a problem, laid out like a SOL-ExecBench problem.

    exchange/definition.json, workloads.jsonl, solutions.jsonl, traces.jsonl, reference.py, blobs
    exchange/solution_files.json    solution -> the file that it came in, where each had one of its own
    exchange/written.json           file of the problem -> SHA-256 of what the import wrote there

Export gives it back; another import tells from what was written whether it was edited since. Of a module of KernelBench
there is that alone.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from kernelblaster.errors import ProblemError
from kernelblaster.problems.definition import Definition
from kernelblaster.problems.interchange.bundle import (
    ProblemBundle,
    find_blobs,
    read_lines,
    read_record,
    write_lines,
    write_record,
)
from kernelblaster.problems.interchange.trace import Trace
from kernelblaster.problems.solution import Solution
from kernelblaster.storage.atomic import write_atomically

Value = TypeVar("Value")
KEPT = "exchange"
_DEFINITION, _REFERENCE, _FILES, _WRITTEN = "definition.json", "reference.py", "solution_files.json", "written.json"
_FILE_NAMES, _DIGESTS = TypeAdapter(dict[str, str]), TypeAdapter(dict[str, list[str]])


def is_imported(directory: Path) -> bool:
    """Whether a problem directory was imported."""
    return (directory / KEPT / _DEFINITION).is_file()


def keep(bundle: ProblemBundle, directory: Path) -> None:
    """Write a bundle beside the files of a problem."""
    place = directory / KEPT
    write_record(place / _DEFINITION, bundle.definition)
    write_lines(place / "workloads.jsonl", bundle.workloads)
    write_lines(place / "solutions.jsonl", bundle.solutions)
    write_lines(place / "traces.jsonl", bundle.traces)
    if bundle.reference_text is not None:
        write_atomically(place / _REFERENCE, bundle.reference_text)
    if bundle.solution_files:
        write_atomically(place / _FILES, json.dumps(dict(bundle.solution_files), indent=1) + "\n")
    else:
        (place / _FILES).unlink(missing_ok=True)
    for blob, path in bundle.blobs.items():
        (place / blob).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place / blob)


def keep_written(directory: Path, files: Mapping[str, str], *, beside_earlier: bool = False) -> None:
    """Record what an import writes into a problem directory, in place of what was recorded, or beside it."""
    earlier = _written(directory) if beside_earlier else {}
    digests = {name: [*earlier.get(name, []), _digest(text.encode())] for name, text in files.items()}
    write_atomically(directory / KEPT / _WRITTEN, json.dumps(digests, indent=1) + "\n")


def is_as_written(path: Path) -> bool | None:
    """Whether a file of a problem is what an import wrote; None where no import has told. Raises ProblemError."""
    written = _written(path.parent)
    return _digest(path.read_bytes()) in written[path.name] if path.name in written else None


def _written(directory: Path) -> dict[str, list[str]]:
    return _read(directory / KEPT / _WRITTEN, _DIGESTS)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def read_kept(directory: Path) -> ProblemBundle:
    """What a problem directory was made from. Raises ProblemError when it is damaged."""
    place = directory / KEPT
    reference = place / _REFERENCE
    bundle = ProblemBundle(
        read_record(place / _DEFINITION, Definition),
        workloads=read_lines(place / "workloads.jsonl", Trace),
        solutions=read_lines(place / "solutions.jsonl", Solution),
        traces=read_lines(place / "traces.jsonl", Trace),
        reference_text=reference.read_text(encoding="utf-8") if reference.is_file() else None,
        solution_files=_read(place / _FILES, _FILE_NAMES),
    )
    return replace(bundle, blobs=dict(find_blobs(place, bundle.blob_paths())))


def _read(path: Path, kind: TypeAdapter[dict[str, Value]]) -> dict[str, Value]:
    try:
        return kind.validate_json(path.read_bytes()) if path.exists() else {}
    except (OSError, ValidationError) as error:
        raise ProblemError(f"{path} cannot be read", hint="import the problem again, or remove the file") from error
