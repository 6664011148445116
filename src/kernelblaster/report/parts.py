"""What parts of a search brought, and what that cost: sweep, code memory, archive, edits, pair lessons, recalled.

The currency is by how much a step raised the fastest kernel of its search: ln of its gain over the start less that of
the fastest before it, 0 where it was no faster. The sum over a search is the logarithm of what the search found. A step
is what its replies cost, prompts and repairs included; classification, reflection and reviews are left out.

What records of one search can say, they say of steps: what those that had a part brought and cost beside those that had
not. Only the sweep is told apart within a step, for the source as it was written was timed beside its variants. Whether
a search without a part finds as much, only a search without it can say (`--ablate`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from kernelblaster.knowledge.pairs import PairEffect
from kernelblaster.report.costs import Cost, cost_of
from kernelblaster.report.islands import migrants
from kernelblaster.report.reading import ProblemRecord, ReportedStep

SEED = 20_261_124
RESAMPLES = 10_000
LEAST_PROBLEMS = 5
"""From which an interval over problems means something."""
LEVEL = 0.95


class Part(StrEnum):
    """A part of the search whose steps can be told from others."""

    CODE_MEMORY = "code memory"
    CROSSOVER = "crossover"
    MIGRATION = "islands: migration"
    OTHER_PARENTS = "other parents"
    EDITS = "replies as edits"
    PAIR_LESSONS = "lessons from pairs"
    REPAIRS = "repairs"


@dataclass(frozen=True)
class StepAccount:
    """What a step brought and cost.

    Attributes:
        raised: ln by which it raised the fastest kernel of its search.
        swept: of that, what the sweep brought over the values that were written.
        was_swept: whether variants were tried.
        cost: of its replies and their prompts.
        parts: that it had.
    """

    problem: str
    raised: float
    swept: float
    was_swept: bool
    cost: Cost
    parts: frozenset[Part]


@dataclass(frozen=True)
class Rate:
    """Gain per 1,000 tokens, in percent of ln; its interval over problems, None where those are few."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class PartAccount:
    """Some steps together.

    Attributes:
        problems: that they are of.
        raised: sum of what they brought, in ln.
        rate: per 1,000 tokens; None where they cost none.
    """

    steps: int
    problems: int
    raised: float
    cost: Cost
    rate: Rate | None


@dataclass(frozen=True)
class PartContrast:
    """Steps that had a part beside all others of the same searches that had a choice.

    Attributes:
        difference: of the two rates; None where either side has no step.
    """

    part: Part
    having: PartAccount
    lacking: PartAccount
    difference: Rate | None


@dataclass(frozen=True)
class PartsAccount:
    """All of some searches.

    Attributes:
        whole: all steps.
        swept: steps with a sweep; what they brought is the sweep's part alone.
        recalled: problems that began with a recalled kernel, and the ln that it brought, without tokens.
        contrasts: of parts that some step had.
        edited: replies that were given as edits, and the share of their kernels' code that these wrote.
        drawing: what drawing lessons from pairs cost beside the steps.
        islands: that replies were spread over, the most of any search; 0 without an archive, None where none says it.
    """

    whole: PartAccount
    swept: PartAccount
    recalled: tuple[int, float]
    contrasts: tuple[PartContrast, ...]
    edited: tuple[int, float | None]
    drawing: Cost
    islands: int | None


def parts_account(records: Sequence[ProblemRecord]) -> PartsAccount | None:
    """The account of searches; None where no step was decided."""
    # Problems of a run share what they learn: a lesson that one of them drew is shown to the others.
    drawn = frozenset(lesson for record in records for lesson in _drawn(record))
    steps = [one for record in records for one in step_accounts(record, drawn)]
    if not steps:
        return None
    brought = [_recalled(record) for record in records]
    return PartsAccount(
        whole=_account(steps),
        swept=_account([one for one in steps if one.was_swept], swept=True),
        recalled=(sum(gain > 0 for gain in brought), sum(brought)),
        contrasts=tuple(_contrast(steps, part) for part in Part if any(part in one.parts for one in steps)),
        edited=_edited(records),
        drawing=cost_of(event for record in records for event in record.lessons),
        islands=max((record.islands for record in records if record.islands is not None), default=None),
    )


def step_accounts(record: ProblemRecord, drawn: frozenset[str] = frozenset()) -> list[StepAccount]:
    """The decided steps of a search, in the order of their decisions; `drawn` are ids of lessons from pairs."""
    moved = migrants(record)
    recalled = record.recalled is not None and record.recalled.accepted
    best = _recalled(record)
    leaders = [(0.0, record.recalled.candidate if recalled and record.recalled else record.start)]
    found = []
    decided = [(step.decided.at, step) for step in record.steps if step.decided is not None]
    for at, step in sorted(decided, key=lambda pair: pair[0]):
        gain = math.log(step.decided.gain) if step.decided is not None and step.decided.accepted else 0.0
        raised = max(0.0, gain - best)
        # Steps of a generation begin together: what led when this one began counts, not what leads when it ends.
        fastest = [kernel for since, kernel in leaders if since <= step.began or since == 0.0][-1]
        swept = step.last.swept if step.last else None
        found.append(
            StepAccount(
                problem=str(record.row.directory),
                raised=raised,
                swept=min(raised, math.log(swept.gain)) if swept and swept.gain and swept.gain > 1 else 0.0,
                was_swept=bool(swept and swept.points),
                cost=step.cost,
                parts=_parts(record, step) | _parts_by_context(step, fastest, drawn, moved),
            )
        )
        if raised > 0:
            best = gain
            leaders.append((at, step.candidate))
    return found


def _parts(record: ProblemRecord, step: ReportedStep) -> frozenset[Part]:
    """Those that the step itself tells."""
    judged = step.last.generated if step.last else None
    had = {
        Part.CODE_MEMORY: step.selected is not None and step.selected.core is not None,
        Part.CROSSOVER: step.slot in record.crossovers,
        Part.EDITS: judged is not None and judged.edits > 0,
        Part.REPAIRS: len(step.attempts) > 1,
    }
    return frozenset(part for part, having in had.items() if having)


def _parts_by_context(
    step: ReportedStep, fastest: str | None, drawn: frozenset[str], moved: frozenset[str]
) -> frozenset[Part]:
    """Those that what led, was drawn and had moved when the step began tells."""
    had = {
        Part.MIGRATION: step.slot in moved,
        Part.OTHER_PARENTS: bool(step.parent) and step.parent != fastest,
        Part.PAIR_LESSONS: step.selected is not None and not drawn.isdisjoint(step.selected.lessons),
    }
    return frozenset(part for part, having in had.items() if having)


def _drawn(record: ProblemRecord) -> Iterator[str]:
    """Ids of lessons that a pair of this search speaks for, or against; a refused one may name a curated lesson."""
    for event in record.lessons:
        yield from (one.lesson for one in event.drawn if one.lesson and one.effect is not PairEffect.REFUSED)


def _edited(records: Sequence[ProblemRecord]) -> tuple[int, float | None]:
    replies = [
        attempt.generated
        for record in records
        for step in record.steps
        for attempt in step.attempts
        if attempt.generated is not None and attempt.generated.edits > 0
    ]
    shares = [reply.written_share for reply in replies if reply.written_share is not None]
    return len(replies), sum(shares) / len(shares) if shares else None


def _recalled(record: ProblemRecord) -> float:
    known = record.recalled
    return math.log(known.speedup) if known is not None and known.accepted and known.speedup else 0.0


def _contrast(steps: Sequence[StepAccount], part: Part) -> PartContrast:
    having = [one for one in steps if part in one.parts]
    where = {one.problem for one in having}
    lacking = [one for one in steps if part not in one.parts and one.problem in where]
    return PartContrast(part, _account(having), _account(lacking), _rate(having, lacking))


def _account(steps: Sequence[StepAccount], *, swept: bool = False) -> PartAccount:
    gains = [one.swept if swept else one.raised for one in steps]
    return PartAccount(
        steps=len(steps),
        problems=len({one.problem for one in steps}),
        raised=sum(gains),
        cost=sum((one.cost for one in steps), start=Cost()),
        rate=_rate(steps, swept=swept),
    )


def _rate(
    steps: Sequence[StepAccount], other: Sequence[StepAccount] | None = None, *, swept: bool = False
) -> Rate | None:
    """Of some steps, or of some less that of others; None where a side cost nothing."""
    problems = sorted({one.problem for one in (*steps, *(other or ()))})
    sides = [_by_problem(side, problems, swept=swept) for side in (steps, *([] if other is None else [other]))]
    if any(side[1].sum() == 0 for side in sides):
        return None
    value = _less(side[0].sum() / side[1].sum() for side in sides)
    if len(problems) < LEAST_PROBLEMS:
        return Rate(value, None, None)
    drawn = np.random.default_rng(SEED).integers(len(problems), size=(RESAMPLES, len(problems)))
    sums = [(side[0][drawn].sum(axis=1), side[1][drawn].sum(axis=1)) for side in sides]
    whole = np.logical_and.reduce([tokens > 0 for _, tokens in sums])
    resampled = [gains[whole] / tokens[whole] for gains, tokens in sums]
    differences = resampled[0] - (resampled[1] if other is not None else 0.0)
    low, high = np.quantile(differences, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Rate(value, float(low), float(high))


def _less(rates: Iterable[float]) -> float:
    first, *rest = (float(rate) for rate in rates)
    return first - sum(rest)


def _by_problem(
    steps: Sequence[StepAccount], problems: Sequence[str], *, swept: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Percent of ln, and thousands of tokens, by problem."""
    place = {problem: index for index, problem in enumerate(problems)}
    gains, tokens = np.zeros(len(problems)), np.zeros(len(problems))
    for one in steps:
        gains[place[one.problem]] += 100 * (one.swept if swept else one.raised)
        tokens[place[one.problem]] += one.cost.tokens / 1000
    return gains, tokens
