"""Where selection looks up what was measured: in a document, or in the tables of an experiment.

Both give the same answer; they differ in cost. A document is read whole, tables by index, however much they hold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from math import inf
from typing import NamedTuple, Protocol

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.knowledge.decisions import SelectionContext
from kernelblaster.knowledge.schema import Cell, KnowledgeDocument, StatisticsRow, Sums


class Level(Enum):
    """How closely a cell matches a context, from exact to remote: name, weight, cap on weighted attempts, gains or not.

    One observation in another state, operator or architecture says less; the weights halve (or worse) per step. Whether
    a technique comes out correct is borrowed from other states, what it gains is not: that is the state's doing.
    """

    EXACT = "state_technique_arch_op_precision", 1.0, inf, True
    STATE_ARCH = "state_technique_arch", 0.5, 8.0, True
    ARCH = "technique_arch", 0.25, 4.0, False
    TECHNIQUE = "technique", 0.1, 2.0, False

    def __init__(self, label: str, weight: float, cap: float, lends_gains: bool) -> None:
        self.label = label
        self.weight = weight
        self.cap = cap
        self.lends_gains = lends_gains


def level_of(cell: Cell, state: str, context: SelectionContext) -> Level:
    """The most specific level that a cell shares with (state, context)."""
    if cell.arch != context.arch:
        return Level.TECHNIQUE
    if cell.state != state:
        return Level.ARCH
    if (cell.op_family, cell.precision) != (context.op_family, context.precision):
        return Level.STATE_ARCH
    return Level.EXACT


class TechniqueTotals(NamedTuple):
    """Sums over cells, as far as a posterior needs them; additive like `Sums`, and possibly weighted."""

    attempts: float = 0
    failed: float = 0
    n: float = 0
    sum_log: float = 0.0
    sum_sq_log: float = 0.0

    @classmethod
    def of(cls, sums: Sums) -> TechniqueTotals:
        """The part of a row's sums."""
        return cls(sums.attempts, sums.failed, sums.n, sums.sum_log, sums.sum_sq_log)

    def plus(self, other: TechniqueTotals, weight: float = 1.0) -> TechniqueTotals:
        """This and `weight` times the other."""
        return TechniqueTotals(*(mine + weight * theirs for mine, theirs in zip(self, other, strict=True)))

    def without_gains(self) -> TechniqueTotals:
        """Attempts and failures alone."""
        return TechniqueTotals(self.attempts, self.failed)

    def minus(self, part: TechniqueTotals) -> TechniqueTotals:
        """What is left without a part of it. Counts come out exact, and so do the sums of nothing."""
        if self.n == part.n:
            return TechniqueTotals(self.attempts - part.attempts, self.failed - part.failed)
        rest = self.plus(part, -1.0)
        return rest._replace(sum_sq_log=max(0.0, rest.sum_sq_log))


class LevelTotals(NamedTuple):
    """What one technique came to at one level, apart by how it was verified."""

    level: Level
    weakly_verified: bool
    totals: TechniqueTotals


class Evidence(Protocol):
    """What selection asks about measurements. Kinds of devices are never added up."""

    def of_techniques(
        self, techniques: Sequence[str], state: str, context: SelectionContext
    ) -> Mapping[str, Sequence[LevelTotals]]:
        """Technique -> its totals by level, seen from (state, context); techniques never attempted may be missing."""
        ...

    def lesson_records(self, kind: DeviceKind) -> Mapping[str, tuple[int, int]]:
        """Lesson id -> how often it was helpful and how often harmful; a lesson without a record may be missing."""
        ...


class DocumentEvidence:
    """Evidence out of the rows and lessons of a document."""

    def __init__(self, document: KnowledgeDocument) -> None:
        self._lessons = document.lessons
        self._rows: dict[str, list[StatisticsRow]] = defaultdict(list)
        for row in document.statistics:
            self._rows[row.cell.technique].append(row)

    def of_techniques(
        self, techniques: Sequence[str], state: str, context: SelectionContext
    ) -> Mapping[str, Sequence[LevelTotals]]:
        """See `Evidence`."""
        return {name: by_level(self._rows[name], state, context) for name in techniques if name in self._rows}

    def lesson_records(self, kind: DeviceKind) -> Mapping[str, tuple[int, int]]:
        """See `Evidence`."""
        return {lesson.id: lesson.record(kind) for lesson in self._lessons}


def by_level(rows: Iterable[StatisticsRow], state: str, context: SelectionContext) -> list[LevelTotals]:
    """Rows of one technique added up by level; those of another kind of device are left out."""
    totals: dict[tuple[Level, bool], TechniqueTotals] = defaultdict(TechniqueTotals)
    for row in rows:
        if row.cell.device_kind is context.device_kind:
            key = (level_of(row.cell, state, context), row.cell.weakly_verified)
            totals[key] = totals[key].plus(TechniqueTotals.of(row.sums))
    return [LevelTotals(level, weak, found) for (level, weak), found in totals.items()]
