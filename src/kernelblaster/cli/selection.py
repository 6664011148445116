"""Options that choose problems of a data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelblaster import Split, Tag
from kernelblaster.cli.settings import configured
from kernelblaster.errors import UsageError

if TYPE_CHECKING:
    from kernelblaster import Problem

ProblemsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PROBLEM]...", help="level1/23, 23, 023_Softmax, or directories; the whole data set if none is given."
    ),
]
SubsetOption = Annotated[str | None, typer.Option("--subset", help="level1, level2 or level3, or a list of them.")]
NumbersOption = Annotated[str | None, typer.Option("--problem-numbers", help="N, N-M or a,b,c-d.")]
TagOption = Annotated[
    list[Tag] | None, typer.Option("--tag", help="Problems that hold this operation; repeatable: any of several.")
]
SplitOption = Annotated[
    Split | None, typer.Option("--split", help="Fixed split by operation: train, or heldout for studies of learning.")
]


def select(
    dataset_dir: Path | str | None,
    subset: str | None,
    numbers: str | None,
    tags: list[Tag] | None = None,
    split: Split | None = None,
    named: list[str] | None = None,
) -> list[Problem]:
    """The problems that are named, or those that the options choose. Raises UsageError, also for both together."""
    from kernelblaster import list_problems, load_problem

    dataset = dataset_dir or configured().config.dataset
    if named:
        if subset or numbers or tags or split:
            raise UsageError("problems are both named and chosen by options", hint="give one of the two")
        return [load_problem(name, dataset=dataset) for name in named]
    return list(list_problems(subset, numbers, tags=tags or (), split=split, dataset=dataset))


def that_declare(problems: list[Problem], size: str | None) -> list[Problem]:
    """Those of some problems that have a size; all where none is asked for. Raises UsageError where none has it."""
    found = [problem for problem in problems if size is None or size in problem.workloads]
    if not found:
        declared = dict.fromkeys(name for problem in problems for name in problem.workloads)
        raise UsageError(f"no size {size} is declared", hint=f"there are {', '.join(declared)}")
    return found
