"""The three files of a problem, made from a definition, its workloads and its solutions.

`reference.py` holds the definition's reference as it came, and below it what KernelBlaster asks of a reference. A
workload becomes a size under its own name. What cannot be one is kept for export, and noted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.errors import ProblemError
from kernelblaster.problems.definition import Definition
from kernelblaster.problems.interchange.bundle import ProblemBundle, file_name
from kernelblaster.problems.interchange.kept import is_as_written, is_imported, keep, keep_written, read_kept
from kernelblaster.problems.interchange.reference_text import reference_source
from kernelblaster.problems.interchange.signature import LauncherSignature, driver_source, launcher_signature
from kernelblaster.problems.interchange.sizes import map_workloads
from kernelblaster.problems.interchange.start import StartKernel, find_start
from kernelblaster.storage.atomic import write_atomically

INIT, NOTES = "init.cu", "NOTES.md"


@dataclass(frozen=True)
class ImportedProblem:
    """A problem directory that was made.

    Attributes:
        definition: name of what it computes.
        directory: where it lies.
        sizes: names of its sizes, one per workload that could be mapped, the cheapest first.
        start: name of the solution that became `init.cu`, or that file where it lay there already; None where it is
            still to be written.
        notes: what could not be mapped, and what to do about it.
    """

    definition: str
    directory: Path
    sizes: tuple[str, ...]
    start: str | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Made:
    """What a bundle makes.

    Attributes:
        files: name -> text.
        sizes, start, notes: see `ImportedProblem`.
    """

    files: dict[str, str]
    sizes: tuple[str, ...]
    start: StartKernel | None
    notes: tuple[str, ...]


def write_problem(bundle: ProblemBundle, parent: Path, *, overwrite: bool = False) -> ImportedProblem:
    """Make `<parent>/<definition>/`; what an earlier import made there is replaced.

    Raises ProblemError, also where a file was edited since, unless `overwrite` allows for that.
    """
    directory = parent / file_name(bundle.definition.name)
    made = _make(bundle)
    if not overwrite:
        refuse_edited(directory, made.files)
    write_files(directory, made.files)
    keep(bundle, directory)
    start = made.start.solution if made.start else own_start(directory)
    return ImportedProblem(bundle.definition.name, directory, made.sizes, start, made.notes)


def _make(bundle: ProblemBundle) -> _Made:
    definition = bundle.definition
    signature = launcher_signature(definition)
    workloads = map_workloads(bundle)
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
    return _Made(files, tuple(workloads.sizes), start, tuple(notes))


def write_files(directory: Path, files: Mapping[str, str]) -> None:
    """Write the files of a problem, and what they are, so that another import knows them."""
    keep_written(directory, files, beside_earlier=True)  # ended here, no file looks edited
    for name, text in files.items():
        write_atomically(directory / name, text)
    keep_written(directory, files)


def own_start(directory: Path) -> str | None:
    """The starting kernel that lies in a problem directory already."""
    return INIT if (directory / INIT).exists() else None


def edited_files(directory: Path, files: Mapping[str, str]) -> list[str]:
    """Names of files that are neither what would be written nor what was written before. Raises ProblemError."""
    differing = [name for name, text in files.items() if _differs(directory / name, text)]
    differing = [name for name in differing if not is_as_written(directory / name)]
    if not differing:
        return []
    # Releases that kept no record of what they wrote made the same of the same.
    before = _make(read_kept(directory)).files if is_imported(directory) else {}
    return [name for name in differing if name not in before or _differs(directory / name, before[name])]


def refuse_edited(directory: Path, files: Mapping[str, str]) -> None:
    """Raise ProblemError for a file that is neither what would be written nor what the import before this one wrote."""
    edited = edited_files(directory, files)
    if edited:
        raise ProblemError(
            f"{directory} holds {', '.join(edited)}, which no import has written like that",
            hint="import into another directory, or give --overwrite (overwrite=True) to lose what was edited",
        )


def _differs(path: Path, text: str) -> bool:
    return path.exists() and path.read_bytes() != text.encode()


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
