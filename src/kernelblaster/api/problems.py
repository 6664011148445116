"""Problems: load, list, define, describe and audit them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernelblaster.config import DATASET
from kernelblaster.cuda_source.launcher import launcher_declaration
from kernelblaster.errors import DeviceMemoryFull, ProblemError, UsageError
from kernelblaster.paths import data_dir, problem_skeleton
from kernelblaster.problems.dataset import Dataset, find_problem, parse_levels, parse_numbers
from kernelblaster.problems.loader import load_problem as load_directory
from kernelblaster.problems.problem import Precision, Problem, ProblemId, StandardWorkload, TensorSpec
from kernelblaster.problems.start import read_start
from kernelblaster.problems.tags import Split, Tag
from kernelblaster.storage.atomic import write_atomically
from kernelblaster.storage.bounded_io import read_source

if TYPE_CHECKING:
    from kernelblaster.evaluation.timing.pytorch_times import PytorchTimes
    from kernelblaster.runs.check_records import CheckRecord

ProblemName = Problem | str | Path
"""A problem, its name (`level1/23`, `23` for level 1, or `023_Softmax`), or its directory."""
DatasetName = str | Path
"""A shipped data set by name, or the directory of one."""
_FILES = ("reference.py", "init.cu", "driver.cpp")
_AUDIT = 2.5
"""Times the memory that one run of a reference takes: several draws are held, and what is made of each."""


def list_problems(
    subset: str | Sequence[str] | None = None,
    numbers: str | None = None,
    *,
    tags: Sequence[Tag | str] = (),
    split: Split | str | None = None,
    dataset: DatasetName = DATASET,
) -> tuple[Problem, ...]:
    """Problems of a data set, by level and number.

    Args:
        subset: `level1`, `level1,level2` or a sequence of such names; None for all levels.
        numbers: `N`, `N-M` or `a,b,c-d` in each of these levels; None for all.
        tags: problems that hold any of these operations; all if none is given.
        split: `train` or `heldout`; None for both.
        dataset: where they are looked for.

    Raises:
        UsageError: malformed, or an item that names no problem.
        ProblemError: a chosen directory is broken.
    """
    chosen = Dataset(_root(dataset))
    if subset is not None and numbers is not None:
        _refuse_other_levels(chosen.ids, subset, numbers)
    return chosen.select(subset, numbers, tags=tags, split=split)


def _refuse_other_levels(known: Sequence[ProblemId], subset: str | Sequence[str], numbers: str) -> None:
    """Raise UsageError for numbers that problems of other levels have alone: they are named."""
    levels = parse_levels(subset)
    for wanted in parse_numbers(numbers):
        held = sorted({identity.level for identity in known if identity.number in wanted})
        if held and not set(held).intersection(levels):
            names = [f"level{level}" for level in held]
            asked = " or ".join(f"level{level}" for level in levels)
            raise UsageError(
                f"no problem of {asked} has the number {wanted}, but there is one in {', '.join(names)}",
                hint=f"--subset {','.join(names)}",
            )


def load_problem(problem: ProblemName, *, dataset: DatasetName = DATASET) -> Problem:
    """The problem that a name or a directory stands for; a `Problem` is returned as it is. Raises UsageError."""
    if isinstance(problem, Problem):
        return problem
    if isinstance(problem, Path):
        return load_directory(problem)
    return find_problem(problem, _root(dataset))


def define_problem(directory: Path, *, reference: str, init: str, driver: str) -> Problem:
    """Write a problem of your own and load it.

    Args:
        directory: made if it is missing; files of the same names in it are replaced.
        reference: text of `reference.py`: a PyTorch module `Model`, `SIZES`, and `SCALARS` where there are some.
        init: text of `init.cu`, the kernel to begin with.
        driver: text of `driver.cpp`, the host harness that calls the launcher.

    Raises:
        ProblemError: the three contradict each other.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in zip(_FILES, (reference, init, driver), strict=True):
        write_atomically(directory / name, text)
    return load_directory(directory)


def create_problem(directory: Path) -> Problem:
    """Make a problem of your own that is sound and correct as it is, commented, to be rewritten.

    Raises UsageError when there is something at that place already.
    """
    if directory.exists() and not (directory.is_dir() and not any(directory.iterdir())):
        raise UsageError(f"{directory} exists already", hint="give a name that is still free")
    texts = {name: (problem_skeleton() / name).read_text(encoding="utf-8") for name in _FILES}
    return define_problem(directory, reference=texts["reference.py"], init=texts["init.cu"], driver=texts["driver.cpp"])


def read_launcher(problem: ProblemName) -> str:
    """The declaration of the function that every kernel of a problem defines, on one line. Raises ProblemError."""
    return launcher_declaration(read_source(load_problem(problem).driver_path))


def describe_tensors(
    problem: ProblemName, size: str = StandardWorkload.FULL, precision: Precision = Precision.FP16
) -> tuple[TensorSpec, ...]:
    """Every tensor that crosses the launcher at one size. Executes `reference.py`. Raises ProblemError."""
    from kernelblaster.problems.reference import tensor_specs

    found = load_problem(problem)
    return tensor_specs(found, size, found.precision_for(precision))


def known_times(problem: ProblemName, *, size: str = StandardWorkload.FULL) -> list[PytorchTimes]:
    """How long PyTorch takes for a problem at one size, on GPUs where that was measured; ships with the data.

    Times of another reference than the problem's own are left out; a problem without one has none.
    Raises MachineError for a damaged file.
    """
    from kernelblaster.evaluation.timing.pytorch_times import times_of

    found = load_problem(problem)
    return [] if found.weakly_verified else times_of(found, size)


def known_starts(problem: ProblemName, *, size: str = StandardWorkload.FULL) -> list[CheckRecord]:
    """How long the start of a problem takes at one size, on GPUs where that was measured; ships with the data.

    Outcomes of other files than the problem's own, and of what was not correct, are left out. What a record of an
    earlier release does not say of the attainable time is computed here.
    Raises MachineError for a damaged file.
    """
    from kernelblaster.evaluation.attainable import attainable_on
    from kernelblaster.runs.check_records import problem_digest, shipped_checks

    found = load_problem(problem)
    rows = [row for row in shipped_checks() if (row.problem, row.workload) == (str(found.id), size)]
    if not rows or not found.has_start or found.weakly_verified:
        return []
    digest = problem_digest(found, read_start(found))
    measured = [row for row in rows if row.digest == digest and row.passed and not row.modelled]
    return [
        row
        if row.attainable_us is not None
        else row.model_copy(update={"attainable_us": attainable_on(row.device, found, size, row.precision)})
        for row in measured
    ]


def audit_problem(
    problem: ProblemName, precisions: Sequence[Precision] = tuple(Precision), *, size: str | None = None
) -> list[str]:
    """Why a trivial kernel would pass a problem, one line per fault; empty for a sound one.

    That its reference cannot be run is a fault as well, and raises nothing.
    Raises UsageError for a size that it does not declare, and MachineError where there is neither a GPU nor the host's
    memory for one.

    Args:
        problem: what is audited.
        precisions: in which kernels that leave something out are held against the judge.
        size: at which size; the cheap one if None. Larger ones need a GPU, and what they take of its memory.
    """
    from kernelblaster.evaluation.correctness.input_store import InputStore
    from kernelblaster.evaluation.integrity.admission import admission_faults
    from kernelblaster.problems.audit import audit_problem as faults_of_the_reference
    from kernelblaster.problems.notes import read_notes
    from kernelblaster.problems.shortcuts import find_shortcuts, resolved
    from kernelblaster.problems.sound_reference import require_sound_reference

    found = load_problem(problem)
    if size is not None and size not in found.workloads:
        declared = ", ".join(found.workloads) or "none"
        raise UsageError(f"{found.slug} declares no size {size}", hint=f"its sizes are {declared}")
    try:
        _refuse_without_room(found, size)
        require_sound_reference(found)
        faults = faults_of_the_reference(found, size)
        if faults:
            return faults
        told = read_notes(found.directory).inert
        shortcuts = [shortcut for shortcut in find_shortcuts(found, size) if str(shortcut) not in told]
        meant = [precision for precision in precisions if precision in found.precisions]
        with InputStore() as inputs:
            return [
                fault
                for precision in meant
                for fault in admission_faults(
                    found, precision, inputs, size, resolved(shortcuts, precision, found.precisions)
                )
            ]
    except (ProblemError, DeviceMemoryFull) as error:
        return [str(error)]
    except RuntimeError as error:
        if "out of memory" not in str(error):
            raise
        return [f"not audited: at size {size} it takes more memory than there is"]


def _refuse_without_room(problem: Problem, size: str | None) -> None:
    """Raise MachineError where an audit on the CPU would take more memory than is free: the kernel would end it."""
    import torch

    from kernelblaster.runs.references import require_host_room

    if not torch.cuda.is_available():
        require_host_room(problem, size or problem.cheap_workload, "auditing", _AUDIT)


def _root(dataset: DatasetName) -> Path:
    return dataset if isinstance(dataset, Path) else data_dir() / dataset
