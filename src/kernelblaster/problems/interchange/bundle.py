"""All that a data set holds of one definition, and the files it is read from and written to."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import TypeVar

from kernelblaster.errors import ProblemError
from kernelblaster.problems.definition import Definition
from kernelblaster.problems.exchanged import ExchangedModel
from kernelblaster.problems.interchange.trace import Trace
from kernelblaster.problems.solution import Solution
from kernelblaster.problems.workload import SafetensorsInput, Workload
from kernelblaster.storage.atomic import write_atomically

Record = TypeVar("Record", bound=ExchangedModel)


class ExchangeFormat(StrEnum):
    """The formats that problems are exchanged in."""

    FLASHINFER = "flashinfer"
    """A trace set of FlashInfer-Bench."""
    SOL = "sol"
    """Problem directories of SOL-ExecBench."""


@dataclass(frozen=True)
class ProblemBundle:
    """A definition with everything that belongs to it.

    Attributes:
        definition: what is computed.
        workloads: one trace each, without a solution.
        solutions: kernels for it.
        traces: their results.
        reference_text: of a `reference.py` that lay beside the definition; None where there was none.
        blobs: files that workloads name -> where they lie; those that are missing are left out.
        solution_files: solutions by name -> the file of a SOL-ExecBench problem that each came in.
    """

    definition: Definition
    workloads: tuple[Trace, ...]
    solutions: tuple[Solution, ...] = ()
    traces: tuple[Trace, ...] = ()
    reference_text: str | None = None
    blobs: Mapping[str, Path] = field(default_factory=dict, hash=False)
    solution_files: Mapping[str, str] = field(default_factory=dict, hash=False)

    def workload(self, name: str) -> Workload | None:
        """The workload of that name, if there is one."""
        return next((line.workload for line in self.workloads if line.workload.name == name), None)

    def blob_paths(self) -> list[str]:
        """Files that workloads name."""
        sources = [source for line in self.workloads for source in line.workload.inputs.values()]
        return sorted({source.path for source in sources if isinstance(source, SafetensorsInput)})


def read_record(path: Path, kind: type[Record]) -> Record:
    """One record from a JSON file. Raises ProblemError that names the file."""
    try:
        return kind.from_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemError(f"{path} cannot be read: {error}", hint="make it a readable UTF-8 file") from error
    except ProblemError as error:
        raise ProblemError(f"{path}: {error}", hint=error.hint) from error


def read_lines(path: Path, kind: type[Record]) -> tuple[Record, ...]:
    """Records from a file of one JSON object per line; none where there is no file. Raises ProblemError."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemError(f"{path} cannot be read: {error}", hint="make it a readable UTF-8 file") from error
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            found.append(kind.from_json(line))
        except ProblemError as error:
            raise ProblemError(f"{path}, line {number}: {error}", hint=error.hint) from error
    return tuple(found)


def write_record(path: Path, record: ExchangedModel) -> None:
    """Write one record as JSON; its directory is made."""
    write_atomically(path, json.dumps(record.to_json(), indent=2, ensure_ascii=False) + "\n")


def write_lines(path: Path, records: Iterable[ExchangedModel]) -> None:
    """Write one record per line; no file for none."""
    lines = [json.dumps(record.to_json(), ensure_ascii=False) + "\n" for record in records]
    if lines:
        write_atomically(path, "".join(lines))


def find_blobs(root: Path, names: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Those of the named files that lie below a directory. Raises ProblemError for one that would lie outside."""
    for name in names:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise ProblemError(f"a workload names the file {name}", hint="files lie below the data set's directory")
        if (root / name).is_file():
            yield name, root / name


def write_blobs(root: Path, blobs: Mapping[str, Path]) -> None:
    """Copy files that workloads name to below a directory, under their names. Raises OSError."""
    for name, path in blobs.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, root / name)


def file_name(name: str) -> str:
    """A name as one path component. Raises ProblemError where it is none."""
    if name in ("", ".", "..") or any(one in name for one in "/\\\0"):
        raise ProblemError(f"{name!r} names no file", hint="use letters, digits, '_', '-' and '.'")
    return name
