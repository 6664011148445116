"""Problems of FlashInfer-Bench and SOL-ExecBench, made into problem directories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.errors import ProblemError, UsageError
from kernelblaster.problems.interchange.flashinfer import is_trace_set, read_trace_set
from kernelblaster.problems.interchange.problem_files import ImportedProblem, write_problem
from kernelblaster.problems.interchange.sol import find_problem_directories, read_problem_directories


@dataclass(frozen=True)
class ImportReport:
    """The outcome of an import.

    Attributes:
        problems: directories that were made, by name of their definition.
        refused: definition -> why no problem could be made of it, with what to do about it.
    """

    problems: tuple[ImportedProblem, ...]
    refused: dict[str, str]


def import_problems(
    source: Path, directory: Path, *, names: Sequence[str] | None = None, overwrite: bool = False
) -> ImportReport:
    """Make a problem directory of every definition: `<directory>/<definition>/`.

    `reference.py` and `driver.cpp` are made from the definition, `init.cu` from a CUDA solution that can be called
    with plain pointers; where there is none, `NOTES.md` says what to write. What was read is kept in `exchange/` beside
    them, so that `export_problem` gives all of it back.

    Args:
        source: root of a trace set of FlashInfer-Bench, or a directory that holds problems of SOL-ExecBench.
        directory: made if it is missing. What an earlier import made in it is replaced; a problem with a file that was
            edited since is refused.
        names: definitions to import; all if None.
        overwrite: replace edited files, too.

    Raises:
        UsageError: `source` holds neither format, or lacks a name.
        ProblemError: a file is damaged, or no problem could be made.
    """
    if is_trace_set(source):
        bundles = list(read_trace_set(source))
    elif find_problem_directories(source):
        bundles = list(read_problem_directories(source))
    else:
        raise UsageError(
            f"{source} holds no definition",
            hint="give the root of a FlashInfer-Bench trace set, or a directory of SOL-ExecBench problems",
        )
    missing = sorted(set(names or ()) - {bundle.definition.name for bundle in bundles})
    if missing:
        raise UsageError(f"{source} does not define {', '.join(missing)}", hint="check the names")
    made, refused = [], {}
    for bundle in bundles:
        if names is None or bundle.definition.name in names:
            try:
                made.append(write_problem(bundle, directory, overwrite=overwrite))
            except ProblemError as error:
                refused[bundle.definition.name] = f"{error}; {error.hint}"
    if not made:
        first = next(iter(refused.items()))
        raise ProblemError(f"no problem could be imported: {first[0]}: {first[1]}", hint="see the message")
    return ImportReport(tuple(made), refused)
