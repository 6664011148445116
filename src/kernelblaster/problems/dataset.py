"""A data set: `level1/NNN_Name/`, `level2/...`, and the selection of problems from it by level and number."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.errors import UsageError
from kernelblaster.problems.loader import identify, load_problem
from kernelblaster.problems.problem import Problem, ProblemId
from kernelblaster.problems.tags import Split, Tag

_ITEM = re.compile(r"(?P<first>\d{1,9})(?:\s*-\s*(?P<last>\d{1,9}))?", re.ASCII)
_LEVEL = re.compile(r"(?:level)?(?P<level>\d{1,9})", re.ASCII)
_DIRECTORY = re.compile(r"(?:(?P<level>level\d{1,9})/)?(?P<number>\d{1,9})_(?P<name>[^/]+)/?", re.ASCII)


@dataclass(frozen=True)
class NumberRange:
    """Problem numbers `first` to `last`, both included."""

    first: int
    last: int

    def __contains__(self, number: int) -> bool:
        return self.first <= number <= self.last

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def parse_numbers(text: str) -> tuple[NumberRange, ...]:
    """Read `23`, `1-10` or `1,4-6,23`. Raises UsageError for anything else."""
    ranges = []
    for item in text.split(","):
        match = _ITEM.fullmatch(item.strip())
        if match is None:
            raise UsageError(f"{text!r} does not name problems", hint="write N, N-M or a list such as 1,4-6,23")
        first = int(match["first"])
        last = int(match["last"] or first)
        if last < first:
            raise UsageError(f"the range {item.strip()} is empty", hint=f"write {last}-{first}")
        ranges.append(NumberRange(first, last))
    return tuple(ranges)


def parse_levels(subset: str | Sequence[str]) -> tuple[int, ...]:
    """Read `level2`, `level1,level3` or a sequence of such names, in order and without repetition.

    Raises UsageError for anything else.
    """
    items = subset.split(",") if isinstance(subset, str) else [part for item in subset for part in item.split(",")]
    matches = [_LEVEL.fullmatch(item.strip()) for item in items]
    if not matches or None in matches:
        raise UsageError(f"{subset!r} is not a subset", hint="write level1, or a list such as level1,level2")
    return tuple(dict.fromkeys(int(match["level"]) for match in matches if match is not None))


class Dataset:
    """The problems below one directory.

    Args:
        root: directory that holds `level1/`, `level2/`, ... Problem files are read when they are selected, so that a
            broken directory does not stand in the way of the others.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._directories = dict(sorted(_scan(root)))

    @property
    def ids(self) -> tuple[ProblemId, ...]:
        """All problems, by level and number."""
        return tuple(self._directories)

    def problems(self) -> tuple[Problem, ...]:
        """All problems, loaded. Raises ProblemError."""
        return tuple(load_problem(directory) for directory in self._directories.values())

    def select(
        self,
        subset: str | Sequence[str] | None = None,
        numbers: str | None = None,
        *,
        tags: Sequence[Tag | str] = (),
        split: Split | str | None = None,
    ) -> tuple[Problem, ...]:
        """Problems of some levels and numbers, by level and number.

        Args:
            subset: `level2`, `level1,level2`, a sequence of those, or None for every level.
            numbers: `N`, `N-M` or `a,b,c-d`, looked up in each chosen level; None for every number. A range takes
                what exists in it; each item must name at least one problem.
            tags: problems that hold any of these operations; all if none is given.
            split: part of the data set; None for the whole.

        Raises:
            UsageError: malformed, or an item that names no problem.
            ProblemError: a chosen directory is broken.
        """
        chosen = self._at_levels(subset)
        if numbers is not None:
            chosen = self._at_numbers(chosen, parse_numbers(numbers))
        wanted, part = _tags(tags), _split(split)
        problems = (load_problem(self._directories[identity]) for identity in chosen)
        found = tuple(
            problem
            for problem in problems
            if (not wanted or wanted & set(problem.tags)) and (part is None or problem.split is part)
        )
        if not found:
            among = str(self._root) if chosen == self.ids else f"{self._root} ({_overview(chosen)})"
            raise UsageError(
                f"no problem of {among} is tagged {', '.join(sorted(wanted)) or 'at all'}"
                f"{f' and in {part}' if part else ''}",
                hint="`kernelblaster problems list` shows the tags of each",
            )
        return found

    def called(self, number: int, name: str, level: str | None = None) -> Problem:
        """The problem whose directory has this number and name, of one level or of any.

        Raises:
            UsageError: none has it, or several.
            ProblemError: its directory is broken.
        """
        slug = f"{number:03d}_{name}"
        numbered = [self._directories[one] for one in self._at_levels(level) if one.number == number]
        found = [directory for directory in numbered if identify(directory)[1] == name]
        if not found:
            near = ", ".join(f"{directory.parent.name}/{directory.name}" for directory in numbered)
            raise UsageError(
                f"{self._root} has no {f'{level}/' if level else ''}{slug}",
                hint=f"of that number there is {near or 'none'}",
            )
        if len(found) > 1:
            raise UsageError(
                f"{slug} names {len(found)} problems", hint=f"name its level, too: {found[0].parent.name}/{slug}"
            )
        return load_problem(found[0])

    def _at_levels(self, subset: str | Sequence[str] | None) -> tuple[ProblemId, ...]:
        if subset is None:
            return self.ids
        levels = parse_levels(subset)
        present = sorted({identity.level for identity in self.ids})
        for level in levels:
            if level not in present:
                raise UsageError(
                    f"{self._root} has no level{level}",
                    hint=f"it has {', '.join(f'level{known}' for known in present)}",
                )
        return tuple(identity for identity in self.ids if identity.level in levels)

    def _at_numbers(self, among: tuple[ProblemId, ...], ranges: Iterable[NumberRange]) -> tuple[ProblemId, ...]:
        found: set[ProblemId] = set()
        for numbers in ranges:
            members = [identity for identity in among if identity.number in numbers]
            if not members:
                raise UsageError(f"no problem has the number {numbers}", hint=f"there are {_overview(among)}")
            found.update(members)
        return tuple(identity for identity in among if identity in found)


def _tags(names: Sequence[Tag | str]) -> frozenset[Tag]:
    """Tags by name. Raises UsageError."""
    try:
        return frozenset(Tag(name) for name in names)
    except ValueError as error:
        raise UsageError(str(error), hint=f"tags are {', '.join(Tag)}") from error


def _split(name: Split | str | None) -> Split | None:
    try:
        return None if name is None else Split(name)
    except ValueError as error:
        raise UsageError(str(error), hint=f"choose {' or '.join(Split)}") from error


def find_problem(name: str, root: Path) -> Problem:
    """The problem that `level1/23`, `23` (of level 1), `[level1/]023_Softmax` or a directory names. Raises UsageError.

    Args:
        name: as a person writes it.
        root: of the data set in which numbers are looked up.
    """
    directory = Path(name)
    if name and directory.is_dir():
        return load_problem(directory)
    called = _DIRECTORY.fullmatch(name)
    if called is not None:
        return Dataset(root).called(int(called["number"]), called["name"], called["level"])
    level, _, number = name.rpartition("/")
    if not number[:1].isdigit():
        raise UsageError(
            f"{name!r} is no directory, and names no problem",
            hint="give level1/23, 23 (of level1), 023_Softmax, or a directory that holds reference.py and driver.cpp",
        )
    chosen = Dataset(root).select(subset=level or "level1", numbers=number)
    if len(chosen) != 1:
        raise UsageError(f"{name} names {len(chosen)} problems", hint="give one, such as level1/23")
    return chosen[0]


def _scan(root: Path) -> Iterable[tuple[ProblemId, Path]]:
    """Identity and directory of everything named like a problem."""
    if not root.is_dir():
        raise UsageError(f"there is no data set at {root}", hint="give the directory that holds level1, level2, ...")
    seen: dict[ProblemId, Path] = {}
    for directory in sorted(root.glob("level*/*")):
        identity, _ = identify(directory)
        if not directory.is_dir() or identity.name:
            continue
        if identity in seen:
            raise UsageError(
                f"{identity} is both {seen[identity].name} and {directory.name}", hint="renumber one of the two"
            )
        seen[identity] = directory
    if not seen:
        raise UsageError(f"{root} holds no problems", hint="problems lie in levelL/NNN_Name below it")
    return seen.items()


def _overview(identities: Iterable[ProblemId]) -> str:
    """`level1: 1-3, 12; level2: 1`"""
    levels: dict[int, list[range]] = {}
    for identity in identities:
        runs = levels.setdefault(identity.level, [])
        if runs and runs[-1].stop == identity.number:
            runs[-1] = range(runs[-1].start, identity.number + 1)
        else:
            runs.append(range(identity.number, identity.number + 1))
    return "; ".join(f"level{level}: {', '.join(map(_range_name, runs))}" for level, runs in levels.items())


def _range_name(numbers: range) -> str:
    return str(numbers.start) if len(numbers) == 1 else f"{numbers.start}-{numbers.stop - 1}"
