"""The files of a SOL-ExecBench problem directory.

definition.json
workload.jsonl     one workload per line
solution*.json     any number; one that was read keeps its file's name
trace.jsonl        results of the solutions
reference.py       the definition's reference once more, where it is there
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from kernelblaster.errors import ProblemError
from kernelblaster.problems.definition import Definition
from kernelblaster.problems.interchange.bundle import (
    ProblemBundle,
    file_name,
    find_blobs,
    read_lines,
    read_record,
    write_blobs,
    write_lines,
    write_record,
)
from kernelblaster.problems.interchange.trace import Trace
from kernelblaster.problems.solution import Solution
from kernelblaster.problems.workload import Workload
from kernelblaster.storage.atomic import write_atomically

DEFINITION, WORKLOADS, TRACES, REFERENCE = "definition.json", "workload.jsonl", "trace.jsonl", "reference.py"


def find_problem_directories(root: Path) -> list[Path]:
    """Problem directories below a directory, itself included."""
    return sorted(path.parent for path in root.rglob(DEFINITION))


def read_problem_directories(root: Path) -> Iterator[ProblemBundle]:
    """Every problem directory below a directory, itself included. Raises ProblemError."""
    for directory in find_problem_directories(root):
        yield _read(directory)


def _read(directory: Path) -> ProblemBundle:
    definition = read_record(directory / DEFINITION, Definition)
    workloads = read_lines(directory / WORKLOADS, Workload)
    reference = directory / REFERENCE
    files = sorted(directory.glob("solution*.json"))
    solutions = [read_record(path, Solution) for path in files]
    strangers = [one.name for one in solutions if one.definition != definition.name]
    if strangers:
        raise ProblemError(
            f"{directory} holds {strangers[0]}, a solution of another definition", hint="move it where it belongs"
        )
    bundle = ProblemBundle(
        definition,
        workloads=tuple(Trace(definition=definition.name, workload=workload) for workload in workloads),
        solutions=tuple(solutions),
        traces=read_lines(directory / TRACES, Trace),
        reference_text=reference.read_text(encoding="utf-8") if reference.is_file() else None,
        solution_files={one.name: path.name for one, path in zip(solutions, files, strict=True)},
    )
    return replace(bundle, blobs=dict(find_blobs(directory, bundle.blob_paths())))


def write_problem_directory(bundle: ProblemBundle, root: Path) -> None:
    """Write a bundle as `<root>/<definition>/`; files of the same names are replaced. Raises ProblemError."""
    directory = root / file_name(bundle.definition.name)
    write_record(directory / DEFINITION, bundle.definition)
    write_lines(directory / WORKLOADS, [line.workload for line in bundle.workloads])
    for solution, file in zip(bundle.solutions, _solution_files(bundle), strict=True):
        write_record(directory / file, solution)
    write_lines(directory / TRACES, bundle.traces)
    if bundle.reference_text is not None:
        write_atomically(directory / REFERENCE, bundle.reference_text)
    write_blobs(directory, bundle.blobs)


def _solution_files(bundle: ProblemBundle) -> list[str]:
    """A file for each solution: the one it came in, else one of its own name that no other came in."""
    taken, files = set(bundle.solution_files.values()), []
    for solution in bundle.solutions:
        file = bundle.solution_files.get(solution.name)
        if file is None:
            file = f"solution_{file_name(solution.name)}.json"
            while file in taken:
                file = f"{file.removesuffix('.json')}_.json"
        files.append(file_name(file))
    return files
