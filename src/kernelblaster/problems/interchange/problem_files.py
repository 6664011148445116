"""The three files of a problem, made from a definition, its workloads and its solutions.

`reference.py` holds the definition's reference as it came, and below it what KernelBlaster asks of a reference. A
workload becomes a size under its own name. What cannot be one is kept for export, and noted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.problems.definition import Definition
from kernelblaster.problems.interchange.bundle import ProblemBundle, file_name
from kernelblaster.problems.interchange.kept import keep
from kernelblaster.problems.interchange.reference_text import reference_source
from kernelblaster.problems.interchange.signature import LauncherSignature, driver_source, launcher_signature
from kernelblaster.problems.interchange.sizes import map_workloads
from kernelblaster.problems.interchange.start import find_start
from kernelblaster.storage.atomic import write_atomically

INIT, NOTES = "init.cu", "NOTES.md"


@dataclass(frozen=True)
class ImportedProblem:
    """A problem directory that was made.

    Attributes:
        definition: name of what it computes.
        directory: where it lies.
        sizes: names of its sizes, one per workload that could be mapped, the cheapest first.
        start: name of the solution that became `init.cu`; None where that is still to be written.
        notes: what could not be mapped, and what to do about it.
    """

    definition: str
    directory: Path
    sizes: tuple[str, ...]
    start: str | None
    notes: tuple[str, ...]


def write_problem(bundle: ProblemBundle, parent: Path) -> ImportedProblem:
    """Make `<parent>/<definition>/`: files of the same names are replaced. Raises ProblemError."""
    definition = bundle.definition
    signature = launcher_signature(definition)
    workloads = map_workloads(bundle)
    directory = parent / file_name(definition.name)
    files = {
        "reference.py": reference_source(definition, workloads),
        "driver.cpp": driver_source(f"the definition {definition.name}", signature),
    }
    start = find_start(bundle.solutions, signature)
    if start is not None:
        files[INIT] = start.source
    notes = [*workloads.notes, *_missing_blobs(bundle)]
    if start is None:
        notes.append(_how_to_start(definition, signature))
    if notes:
        files[NOTES] = "".join(f"- {note}\n" for note in notes)
    for name, text in files.items():
        write_atomically(directory / name, text)
    keep(bundle, directory)
    return ImportedProblem(
        definition.name, directory, tuple(workloads.sizes), start.solution if start else None, tuple(notes)
    )


def _missing_blobs(bundle: ProblemBundle) -> Iterator[str]:
    missing = [path for path in bundle.blob_paths() if path not in bundle.blobs]
    if missing:
        yield f"workloads name files that are not there: {', '.join(missing)}; add them to the source and import again"


def _how_to_start(definition: Definition, signature: LauncherSignature) -> str:
    kinds = [
        f"{name}: {tensor.dtype} [{', '.join(tensor.shape)}]"
        for name, tensor in (*definition.outputs.items(), *definition.inputs.items())
        if tensor.shape is not None
    ]
    return (
        "no solution can be the start: a start is CUDA whose entry point takes pointers and numbers named as in the "
        f"definition. Write init.cu, which defines `{signature.declaration.removesuffix(';')} {{ ... }}`; the pointers "
        f"are on the device, row-major: {'; '.join(kinds)}"
    )
