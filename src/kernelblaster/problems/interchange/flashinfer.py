"""The folders of a FlashInfer-Bench trace set.

definitions/<op_type>/<definition>.json
workloads/<op_type>/<definition>.jsonl                         traces without solution and evaluation
solutions/<author>/<op_type>/<definition>/<solution>.json
traces/<author>/<op_type>/<definition>.jsonl
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

DEFINITIONS = "definitions"
_UNKNOWN = "unknown"
"""Stands for an author or category that nobody names."""


def is_trace_set(directory: Path) -> bool:
    """Whether a directory is a trace set."""
    return (directory / DEFINITIONS).is_dir()


def read_trace_set(root: Path) -> Iterator[ProblemBundle]:
    """Every definition of a trace set with what belongs to it, by name. Raises ProblemError."""
    definitions = [read_record(path, Definition) for path in sorted((root / DEFINITIONS).rglob("*.json"))]
    workloads = [line for path in sorted((root / "workloads").rglob("*.jsonl")) for line in read_lines(path, Trace)]
    solutions = [read_record(path, Solution) for path in sorted((root / "solutions").rglob("*.json"))]
    traces = [line for path in sorted((root / "traces").rglob("*.jsonl")) for line in read_lines(path, Trace)]
    if not definitions:
        raise ProblemError(f"{root / DEFINITIONS} holds no definition", hint="give the root of a trace set")
    for definition in sorted(definitions, key=lambda one: one.name):
        bundle = ProblemBundle(
            definition,
            workloads=tuple(line for line in workloads if line.definition == definition.name),
            solutions=tuple(one for one in solutions if one.definition == definition.name),
            traces=tuple(line for line in traces if line.definition == definition.name),
        )
        yield replace(bundle, blobs=dict(find_blobs(root, bundle.blob_paths())))


def write_trace_set(bundle: ProblemBundle, root: Path) -> None:
    """Add a bundle to a trace set; files of the same names are replaced. Raises ProblemError."""
    definition = bundle.definition
    category, name = file_name(definition.op_type or _UNKNOWN), file_name(definition.name)
    write_record(root / DEFINITIONS / category / f"{name}.json", definition)
    write_lines(root / "workloads" / category / f"{name}.jsonl", bundle.workloads)
    authors = {solution.name: file_name(solution.author) for solution in bundle.solutions}
    for solution in bundle.solutions:
        place = root / "solutions" / authors[solution.name] / category / name
        write_record(place / f"{file_name(solution.name)}.json", solution)
    by_author: dict[str, list[Trace]] = {}
    for trace in bundle.traces:
        by_author.setdefault(authors.get(trace.solution or "", _UNKNOWN), []).append(trace)
    for author, traces in by_author.items():
        write_lines(root / "traces" / author / category / f"{name}.jsonl", traces)
    write_blobs(root, bundle.blobs)
