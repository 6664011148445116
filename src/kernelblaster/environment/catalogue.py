"""Problems by exact identifier, task lists by split, and draws that a seed repeats."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernelblaster.environment.headroom import HeadroomList, headroom_list
from kernelblaster.errors import UsageError
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.tags import Split, Tag

_PADDED = 3
_SHORT = re.compile(r"L(?P<level>[0-9]{1,9})_(?P<number>[0-9]{1,9})(?:_(?P<name>.+))?")
_PATH = re.compile(r"level(?P<level>[0-9]{1,9})/(?P<number>[0-9]{1,9})")


class UnknownProblem(UsageError):
    """No problem has the identifier, the place in a list, or the level that was asked for."""


def problem_identifier(problem: Problem) -> str:
    """The one name under which a problem is reported: `L1_23_Softmax`."""
    return f"L{problem.id.level}_{problem.id.number}_{problem.name}"


def level_of(identifier: str) -> int:
    """The level in an identifier, 1 of `L1_23_Softmax`. Raises UsageError where there is none."""
    found = _SHORT.fullmatch(identifier)
    if found is None:
        raise UsageError(f"{identifier!r} is no problem's name", hint="names are like L1_23_Softmax")
    return int(found["level"])


def names_of(problem: Problem) -> tuple[str, ...]:
    """All names of a problem: `L1_23_Softmax`, `L1_23`, `level1/23`, `level1/023`."""
    level, number = problem.id.level, problem.id.number
    short = f"L{level}_{number}"
    return (problem_identifier(problem), short, f"level{level}/{number}", f"level{level}/{number:0{_PADDED}d}")


@dataclass(frozen=True)
class ProblemPool:
    """Where a problem is drawn from.

    Attributes:
        split: name of a task list; None for what is to learn from: `train`, or all where nothing is tagged.
        levels: only these; empty for all.
    """

    split: str | None = None
    levels: tuple[int, ...] = ()


ALL = "all"
"""The task list of all problems."""


class Catalogue:
    """The problems of an environment.

    Args:
        problems: of one data set; those whose own driver judges them are left out, since nothing contains them.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(
            sorted((one for one in problems if not one.weakly_verified), key=lambda one: (one.id, one.name))
        )
        self._lists = _task_lists(self.problems)
        self._by_name = {name: problem for problem in self.problems for name in names_of(problem)}
        if not self.problems:
            raise UsageError(
                "an environment needs a problem that is judged against a reference", hint="name a data set"
            )

    def find(self, name: str) -> Problem:
        """The problem with exactly this name, see `names_of`. Raises UnknownProblem."""
        if name in self._by_name:
            return self._by_name[name]
        raise UnknownProblem(f"there is no problem {name!r}", hint=self._cure(name))

    def splits(self) -> tuple[str, ...]:
        """Names of the task lists.

        `all`, one per level, `train` and `heldout` where problems are tagged, one per precision that problems are meant
        in, one per operation that problems hold, and three by what their starts leave to gain (`HeadroomList`).
        """
        return tuple(self._lists)

    def tasks(self, split: str) -> tuple[Problem, ...]:
        """The problems of a task list, by level and number. Raises UnknownProblem."""
        if split not in self._lists:
            raise UnknownProblem(f"there is no split {split!r}", hint=f"use {', '.join(self.splits())}")
        return self._lists[split]

    def choose(self, names: Sequence[str]) -> tuple[Problem, ...]:
        """The problems of task lists and exact names, each once; all if none is named. Raises UnknownProblem."""
        if not names:
            return self.problems
        lists = (self.tasks(name) if name in self._lists else (self.find(name),) for name in names)
        return tuple({problem.id: problem for tasks in lists for problem in tasks}.values())

    def at(self, split: str, index: int) -> Problem:
        """The problem at a place of a task list, counted from 0. Raises UnknownProblem."""
        tasks = self.tasks(split)
        if not 0 <= index < len(tasks):
            raise UnknownProblem(f"{split} has no problem at {index}", hint=f"use 0 to {len(tasks) - 1}")
        return tasks[index]

    def range(self, split: str, start: int | None, stop: int | None) -> tuple[Problem, ...]:
        """The problems of a task list from `start`, counted from 0, up to before `stop`. Raises UnknownProblem."""
        for place in (start, stop):
            if place is not None and place < 0:
                raise UnknownProblem(f"{split} has no problem at {place}", hint="places are counted from 0")
        return self.tasks(split)[start:stop]

    def draw(self, seed: int, where: ProblemPool) -> Problem:
        """A problem that the seed decides, whatever else was drawn. Raises UnknownProblem."""
        split = where.split or (Split.TRAIN if Split.TRAIN in self._lists else ALL)
        among = [one for one in self.tasks(split) if not where.levels or one.id.level in where.levels]
        if not among:
            raise UnknownProblem(
                f"no problem of {split} is of level {', '.join(map(str, where.levels))}",
                hint=f"use other levels, or another split: {', '.join(self.splits())}",
            )
        return random.Random(seed).choice(among)

    def _cure(self, name: str) -> str:
        """The problem that was probably meant, else how names look."""
        match = _SHORT.fullmatch(name) or _PATH.fullmatch(name)
        meant = None if match is None else self._by_name.get(f"L{int(match['level'])}_{int(match['number'])}")
        if meant is not None:
            return f"did you mean {problem_identifier(meant)}? Names match exactly"
        first = self.problems[0]
        return f"names match exactly and look like {', '.join(names_of(first))}; `kernelblaster env list` shows all"


def _task_lists(problems: Sequence[Problem]) -> dict[str, tuple[Problem, ...]]:
    """Name -> problems; those that would be empty are left out."""
    levels = sorted({problem.id.level for problem in problems})
    lists = {ALL: list(problems)}
    lists |= {f"level{level}": [one for one in problems if one.id.level == level] for level in levels}
    lists |= {part.value: [one for one in problems if one.split is part] for part in Split}
    lists |= {precision.value: [one for one in problems if precision in one.precisions] for precision in Precision}
    lists |= {tag.value: [one for one in problems if tag in one.tags] for tag in Tag}
    left = [(problem, headroom_list(problem)) for problem in problems]
    lists |= {name.value: [problem for problem, found in left if found is name] for name in HeadroomList}
    return {name: tuple(found) for name, found in lists.items() if found}
