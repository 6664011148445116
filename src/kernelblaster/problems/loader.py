"""Reads one problem directory into a `Problem`, by parsing text alone.

`SIZES` and `SCALARS` are literals of `reference.py`, so that listing problems needs neither torch nor the execution
of anybody's code. What the three files say about each other is compared here, once; later layers rely on it.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from kernelblaster.cuda_source.launcher import LAUNCHER
from kernelblaster.cuda_source.lexer import blank_comments
from kernelblaster.errors import ProblemError
from kernelblaster.problems.problem import Problem, ProblemId, StandardWorkload
from kernelblaster.problems.python_source import parse_python
from kernelblaster.problems.self_checking import is_self_checking, load_self_checking
from kernelblaster.problems.tensor_declarations import (
    NAMES,
    read_dtypes,
    read_indices,
    read_mends,
    read_outputs,
    read_tags,
)
from kernelblaster.storage.bounded_io import read_source

_SIZE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_NUMBERED = re.compile(r"(?P<number>\d+)_(?P<name>.+)")
_LEVEL = re.compile(r"level(?P<level>\d+)")
_USE = re.compile(r'\bd\s*\.\s*(?P<kind>size|scalar|output)\s*\(\s*"(?P<name>[^"]*)"\s*\)')


def load_problem(directory: Path) -> Problem:
    """Load a problem directory: one of the data set, a user's own, or a self-checking KernelBench-CUDA one.

    Number and level come from the names `levelL/NNN_Name`; any other directory is level 0, number 0, and keeps its
    whole name. Raises ProblemError when a file is missing, unreadable or contradicts another.
    """
    directory = directory.resolve()
    if not directory.is_dir():
        raise ProblemError(f"{directory} is not a directory", hint="give the directory that holds driver.cpp")
    identity, name = identify(directory)
    if is_self_checking(directory):
        return load_self_checking(directory, identity, name)
    reference = _read(directory, "reference.py")
    driver = _read(directory, "driver.cpp")
    init = _read(directory, "init.cu")
    literals = _literals(directory / "reference.py", reference, ("SIZES", "SCALARS", *NAMES))
    outputs = read_outputs(directory, literals)
    problem = Problem(
        id=identity,
        name=name,
        directory=directory,
        workloads=_sizes(directory, literals),
        scalars=_scalars(directory, literals),
        outputs=outputs,
        dtypes=read_dtypes(directory, literals),
        indices=read_indices(directory, literals, outputs),
        tags=read_tags(directory, literals),
        mends=read_mends(directory, literals),
    )
    _compare(problem, driver, init)
    return problem


def identify(directory: Path) -> tuple[ProblemId, str]:
    """Level, number and name that a directory's path states; level 0 and number 0 where it states none."""
    numbered = _NUMBERED.fullmatch(directory.name)
    level = _LEVEL.fullmatch(directory.parent.name)
    if numbered is None or level is None:
        return ProblemId(0, 0), directory.name
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


def _literals(path: Path, text: str, names: tuple[str, ...]) -> dict[str, object]:
    """Values of the module-level assignments to `names`, those that exist."""
    try:
        body = parse_python(text, filename=str(path)).body
    except (SyntaxError, ValueError) as error:
        raise ProblemError(f"{path} is not valid Python: {error}", hint="correct the file") from error
    found: dict[str, object] = {}
    for statement in body:
        if isinstance(statement, ast.Assign):
            targets, value = statement.targets, statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets, value = [statement.target], statement.value
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name) and target.id in names:
                found[target.id] = _literal(path, target.id, value)
    return found


def _literal(path: Path, name: str, value: ast.expr) -> object:
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise ProblemError(
            f"{name} in {path}, line {value.lineno}, is not a literal",
            hint="write its numbers out: the file is not executed to read them",
        ) from None


def _sizes(directory: Path, literals: dict[str, object]) -> dict[str, dict[str, int]]:
    declared = literals.get("SIZES")
    if not isinstance(declared, dict) or not declared:
        raise ProblemError(
            f"{directory / 'reference.py'} declares no SIZES",
            hint='add SIZES = {"small": {...}, "medium": {...}, "full": {...}} with integer parameters',
        )
    workloads: dict[str, dict[str, int]] = {}
    for name, parameters in declared.items():
        if not isinstance(name, str) or not _SIZE_NAME.fullmatch(name):
            raise ProblemError(
                f"SIZES of {directory.name} has {name!r}",
                hint="name sizes with letters, digits, '_', '-' and '.', e.g. small or batch_1",
            )
        workloads[name] = _parameters(directory, name, parameters)
    names = {frozenset(parameters) for parameters in workloads.values()}
    if len(names) > 1:
        odd = sorted(frozenset.union(*names) - frozenset.intersection(*names))
        raise ProblemError(
            f"sizes of {directory.name} have different parameters", hint=f"declare {', '.join(odd)} in each size"
        )
    well_known = [str(workload) for workload in StandardWorkload]
    ordered = well_known if set(workloads) <= set(well_known) else workloads
    return {name: workloads[name] for name in ordered if name in workloads}


def _parameters(directory: Path, workload: str, parameters: object) -> dict[str, int]:
    if not isinstance(parameters, dict) or not parameters:
        raise ProblemError(
            f"size {workload} of {directory.name} has no parameters", hint='write it as {"name": 123, ...}'
        )
    for name, value in parameters.items():
        # bool is an int in Python, and would reach the launcher as 0 or 1 unnoticed.
        if not isinstance(name, str) or not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ProblemError(
                f"parameter {name!r} of size {workload} in {directory.name} is {value!r}",
                hint="parameters are named integers from 0; other numbers belong in SCALARS",
            )
    return dict(parameters)


def _scalars(directory: Path, literals: dict[str, object]) -> dict[str, float]:
    declared = literals.get("SCALARS", {})
    if not isinstance(declared, dict):
        raise ProblemError(f"SCALARS of {directory.name} is not a dict", hint='write {"name": 0.1, ...}')
    for name, value in declared.items():
        if not isinstance(name, str) or not isinstance(value, int | float) or isinstance(value, bool):
            raise ProblemError(f"scalar {name!r} of {directory.name} is {value!r}", hint="scalars are named numbers")
    return {name: float(value) for name, value in declared.items()}


def _compare(problem: Problem, driver: str, init: str) -> None:
    """Raise ProblemError when the files of a problem disagree."""
    declared = {"size": set(next(iter(problem.workloads.values()))), "scalar": set(problem.scalars)}
    declared["output"] = set(problem.outputs)
    both = sorted(declared["size"] & declared["scalar"])
    if both:
        raise ProblemError(f"{', '.join(both)} of {problem.slug} is a size and a scalar", hint="rename one of the two")
    for use in _USE.finditer(_without_comments(driver)):
        if use["name"] not in declared[use["kind"]]:
            known = ", ".join(sorted(declared[use["kind"]])) or "none"
            raise ProblemError(
                f"driver.cpp of {problem.slug} asks for {use['kind']} {use['name']!r}, which reference.py lacks",
                hint=f"declared: {known}",
            )
    for name, text in (("driver.cpp", driver), ("init.cu", init)):
        if LAUNCHER not in text:
            raise ProblemError(f"{name} of {problem.slug} does not mention {LAUNCHER}", hint=f"{name} must name it")
    if "KB_DRIVER(" not in driver and "KB_HARNESS(" not in driver:
        raise ProblemError(
            f"driver.cpp of {problem.slug} has no KB_DRIVER", hint="include <kernelblaster/driver.hpp> and end with it"
        )


def _without_comments(driver: str) -> str:
    """The driver with comments blanked; as it is where it cannot hold one, which lists of hundreds of problems feel."""
    return blank_comments(driver) if "/" in driver.replace("<kernelblaster/", "") else driver
