"""Reads one problem directory into a `Problem`, by parsing text alone.

`SIZES` and `SCALARS` are literals of `reference.py`, so that listing problems needs neither torch nor the execution
of anybody's code. What the three files say about each other is compared here, once; later layers rely on it.
"""

from __future__ import annotations

import re
from pathlib import Path

from kernelblaster.cuda_source.launcher import LAUNCHER
from kernelblaster.errors import ProblemError
from kernelblaster.problems.driver_names import check_names
from kernelblaster.problems.problem import Problem, ProblemId, StandardWorkload
from kernelblaster.problems.python_source import Declarations, read_declarations
from kernelblaster.problems.self_checking import is_self_checking, load_self_checking
from kernelblaster.problems.tensor_declarations import (
    NAMES,
    read_dtypes,
    read_indices,
    read_mends,
    read_names,
    read_outputs,
    read_precisions,
    read_ranges,
    read_tags,
)
from kernelblaster.storage.bounded_io import read_source

_SIZE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_NUMBERED = re.compile(r"(?P<number>\d+)_(?P<name>.+)")
_LEVEL = re.compile(r"level(?P<level>\d+)")


def load_problem(directory: Path) -> Problem:
    """Load a problem directory: one of the data set, a user's own, or a self-checking KernelBench-CUDA one.

    Number and level come from the names `levelL/NNN_Name`; any other directory is level 0, number 0, and goes
    by its own name. Raises ProblemError when a file is missing, unreadable or contradicts another.
    """
    directory = directory.resolve()
    if not directory.is_dir():
        raise ProblemError(f"{directory} is not a directory", hint="give the directory that holds driver.cpp")
    identity, name = identify(directory)
    if is_self_checking(directory):
        return load_self_checking(directory, identity, name)
    reference = _read(directory, "reference.py")
    driver = _read(directory, "driver.cpp")
    init = _read(directory, "init.cu") if (directory / "init.cu").exists() else None
    declared = read_declarations(directory / "reference.py", reference, ("SIZES", "SCALARS", *NAMES))
    outputs = read_outputs(declared)
    problem = Problem(
        id=identity,
        name=name,
        directory=directory,
        workloads=_sizes(declared),
        scalars=_scalars(declared),
        outputs=outputs,
        dtypes=read_dtypes(declared),
        indices=read_indices(declared, outputs),
        precisions=read_precisions(declared),
        ranges=read_ranges(declared),
        kept=read_names(declared, "KEPT"),
        partly_read=read_names(declared, "PARTLY_READ"),
        tags=read_tags(declared),
        declared_mends=read_mends(declared),
    )
    _compare(problem, driver, init)
    return problem


def identify(directory: Path) -> tuple[ProblemId, str]:
    """Level, number and name that a directory's path states; level 0 and number 0 where it states none."""
    numbered = _NUMBERED.fullmatch(directory.name)
    level = _LEVEL.fullmatch(directory.parent.name)
    if numbered is None or level is None:
        return ProblemId(0, 0, directory.name), directory.name
    return ProblemId(int(level["level"]), int(numbered["number"])), numbered["name"]


def _read(directory: Path, name: str) -> str:
    path = directory / name
    try:
        return read_source(path)
    except FileNotFoundError:
        raise ProblemError(
            f"{directory} has no {name}",
            hint="a problem directory holds reference.py, init.cu and driver.cpp",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemError(f"{path} cannot be read: {error}", hint="make it a readable UTF-8 file") from error


def _sizes(declared: Declarations) -> dict[str, dict[str, int]]:
    sizes, place = declared.get("SIZES", None), declared.place("SIZES")
    if not isinstance(sizes, dict) or not sizes:
        raise ProblemError(
            f"{place} declares no SIZES",
            hint='add SIZES = {"small": {...}, "medium": {...}, "full": {...}} with integer parameters',
        )
    workloads: dict[str, dict[str, int]] = {}
    for name, parameters in sizes.items():
        if not isinstance(name, str) or not _SIZE_NAME.fullmatch(name):
            raise ProblemError(
                f"{place}: SIZES has {name!r}",
                hint="name sizes with letters, digits, '_', '-' and '.', e.g. small or batch_1",
            )
        workloads[name] = _parameters(place, name, parameters)
    names = {frozenset(parameters) for parameters in workloads.values()}
    if len(names) > 1:
        odd = sorted(frozenset.union(*names) - frozenset.intersection(*names))
        raise ProblemError(f"{place}: sizes have different parameters", hint=f"declare {', '.join(odd)} in each size")
    well_known = [str(workload) for workload in StandardWorkload]
    ordered = well_known if set(workloads) <= set(well_known) else workloads
    return {name: workloads[name] for name in ordered if name in workloads}


def _parameters(place: str, workload: str, parameters: object) -> dict[str, int]:
    if not isinstance(parameters, dict) or not parameters:
        raise ProblemError(f"{place}: size {workload} has no parameters", hint='write it as {"name": 123, ...}')
    for name, value in parameters.items():
        # bool is an int in Python, and would reach the launcher as 0 or 1 unnoticed.
        if not isinstance(name, str) or not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ProblemError(
                f"{place}: parameter {name!r} of size {workload} is {value!r}",
                hint="parameters are named integers from 0; other numbers belong in SCALARS",
            )
    return dict(parameters)


def _scalars(declared: Declarations) -> dict[str, float]:
    scalars, place = declared.get("SCALARS", {}), declared.place("SCALARS")
    if not isinstance(scalars, dict):
        raise ProblemError(f"{place}: SCALARS is not a dict", hint='write {"name": 0.1, ...}')
    for name, value in scalars.items():
        if not isinstance(name, str) or not isinstance(value, int | float) or isinstance(value, bool):
            raise ProblemError(f"{place}: scalar {name!r} is {value!r}", hint="scalars are named numbers")
    return {name: float(value) for name, value in scalars.items()}


def _compare(problem: Problem, driver: str, init: str | None) -> None:
    """Raise ProblemError when the files of a problem disagree; one without a start has none."""
    sizes = set(next(iter(problem.workloads.values())))
    both = sorted(sizes & set(problem.scalars))
    if both:
        raise ProblemError(
            f"{problem.reference_path}: {', '.join(both)} is a size and a scalar", hint="rename one of the two"
        )
    check_names(problem.driver_path, driver, {"size": sizes, "scalar": problem.scalars, "output": problem.outputs})
    for path, text in ((problem.driver_path, driver), (problem.init_path, init)):
        if text is not None and LAUNCHER not in text:
            raise ProblemError(f"{path} does not mention {LAUNCHER}", hint=f"{path.name} must name it")
    if "KB_DRIVER(" not in driver and "KB_HARNESS(" not in driver:
        raise ProblemError(
            f"{problem.driver_path} has no KB_DRIVER", hint="include <kernelblaster/driver.hpp> and end with it"
        )
