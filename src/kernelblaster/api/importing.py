"""Problems of FlashInfer-Bench, SOL-ExecBench and KernelBench, made into problem directories."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shlex import quote

from kernelblaster.errors import ProblemError, UsageError
from kernelblaster.problems.interchange.flashinfer import is_trace_set, read_trace_set
from kernelblaster.problems.interchange.kernelbench.checkout import checkout_modules, find_modules, same_number
from kernelblaster.problems.interchange.kernelbench.evaluation_mode import evaluation_notes
from kernelblaster.problems.interchange.kernelbench.importing import import_kernelbench
from kernelblaster.problems.interchange.kernelbench.meta_run import FULL
from kernelblaster.problems.interchange.kernelbench.small_size import size_notes
from kernelblaster.problems.interchange.problem_files import (
    ImportedProblem,
    own_start,
    refuse_edited,
    write_files,
    write_problem,
)
from kernelblaster.problems.interchange.sol import find_problem_directories, read_problem_directories
from kernelblaster.storage.bounded_io import read_source

_DRIVER = "driver.cpp"


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

    A module of KernelBench becomes `<directory>/level1/019_ReLU/`, without a start: a search has that written first.

    Args:
        source: root of a trace set of FlashInfer-Bench, a directory that holds problems of SOL-ExecBench, or a checkout
            of KernelBench.
        directory: made if it is missing. What an earlier import made in it is replaced; a problem with a file that was
            edited since is refused.
        names: definitions to import (of KernelBench `level1/019_ReLU`, or as much of that as tells it from others); all
            if None.
        overwrite: replace edited files, too.

    Raises:
        UsageError: `source` holds none of these formats, or lacks a name; a file lies where `directory` would.
        ProblemError: a file of a data set is damaged.
    """
    file = next((path for path in (directory, *directory.parents) if path.exists() and not path.is_dir()), None)
    if file is not None:
        raise UsageError(f"{file} is a file", hint="give a directory, in which problem directories are made")
    makers = list(_makers(source, directory, overwrite=overwrite))
    if not makers:
        raise UsageError(f"{source} holds no definition", hint="its files define none: give another directory")
    chosen = _chosen(source, [name for name, _ in makers], names)
    made, refused = [], {}
    for name, make in makers:
        if name in chosen:
            try:
                made.append(make())
            except ProblemError as error:
                refused[name] = f"{error}; {error.hint}"
    return ImportReport(tuple(made), refused)


def _chosen(source: Path, defined: Sequence[str], names: Sequence[str] | None) -> set[str]:
    """Those of the definitions that are asked for. Raises UsageError for a name that is of none, or of several."""
    if names is None:
        return set(defined)
    modules = checkout_modules(source)
    chosen = set()
    for name in names:
        meant = [name] if name in defined else find_modules(name, modules)
        if not meant:
            form = ", or as much of that as tells it from others" if modules else ""
            raise UsageError(f"{source} does not define {name}", hint=f"check the names; one is {defined[0]}{form}")
        if len(meant) > 1:
            raise UsageError(f"{name} is the name of {len(meant)} definitions", hint=f"say which: {', '.join(meant)}")
        chosen.add(meant[0])
    return chosen


def _makers(source: Path, directory: Path, *, overwrite: bool) -> Iterator[tuple[str, Callable[[], ImportedProblem]]]:
    """Name of each definition, and what makes its problem directory. Raises UsageError, ProblemError."""
    modules = checkout_modules(source)
    for name, module in modules.items():
        yield name, partial(_import_module, name, module, directory, overwrite=overwrite)
    if modules:
        return
    if is_trace_set(source):
        bundles = read_trace_set(source)
    elif find_problem_directories(source):
        bundles = read_problem_directories(source)
    else:
        raise UsageError(f"{source} holds no definition", hint=_what_instead(source))
    for bundle in bundles:
        yield bundle.definition.name, partial(write_problem, bundle, directory, overwrite=overwrite)


def _what_instead(source: Path) -> str:
    """What to do with something that is not imported."""
    if source.is_file():
        return f"a single file of KernelBench's form is not imported: run --problem {quote(str(source))}"
    if (source / _DRIVER).is_file():
        return f"it is a problem directory already: run --problem-dir {quote(str(source))}"
    level = source.resolve()
    for root, problems in ((source, source.glob(f"level*/*/{_DRIVER}")), (level.parent, level.glob(f"*/{_DRIVER}"))):
        if any(problems):
            named = quote(str(root))
            return f"it holds problem directories already: --dataset-dir {named}, or run --problem-dir with one of them"
    if level.is_dir() and any(module.parent == level for module in checkout_modules(level.parent).values()):
        return f"give the checkout, not one of its levels: {quote(str(level.parent))}"
    return "give a checkout of KernelBench, the root of a FlashInfer-Bench trace set, or SOL-ExecBench problems"


def _import_module(name: str, source: Path, directory: Path, *, overwrite: bool) -> ImportedProblem:
    """One module; made beside its place first, so that nothing edited is lost."""
    level, _, own_name = name.partition("/")
    with tempfile.TemporaryDirectory() as room:
        problem = import_kernelbench(source, Path(room) / level, own_name)
        notes = (*evaluation_notes(problem, FULL), *size_notes(problem))
        files = {path.name: read_source(path) for path in (problem.reference_path, problem.driver_path)}
    target = directory / level / problem.directory.name
    others = same_number(target)
    if others:
        raise ProblemError(
            f"{source} has the level and number of {others[0]}", hint="give one of the two another number, or remove it"
        )
    if not overwrite:
        refuse_edited(target, files)
    write_files(target, files)
    return ImportedProblem(name, target, tuple(problem.workloads), own_start(target), notes)
