"""What parts of a search brought, per 1,000 tokens: the sweep, code memory, crossover, repairs, what was recalled.

The currency is by how much a step raised the fastest kernel of its search: ln of its gain over the start less that of
the fastest before it, 0 where it was no faster. The sum over a search is the logarithm of what the search found. A step
is what its replies cost, prompts and repairs included; classification, reflection and reviews are left out.

What records of one search can say, they say of steps: what those that had a part brought and cost beside those that had
not. Only the sweep is told apart within a step, for the source as it was written was timed beside its variants. Whether
a search without a part finds as much, only a search without it can say (`--ablate`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

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
    OTHER_PARENTS = "other parents"
    REPAIRS = "repairs"


TOLD = {
    Part.CODE_MEMORY: "the prompt showed a verified kernel of another problem",
    Part.CROSSOVER: "the prompt showed a second fast kernel of this search",
    Part.OTHER_PARENTS: "improved another kernel than the fastest",
    Part.REPAIRS: "a first reply failed, and was repaired or not",
}


@dataclass(frozen=True)
class StepAccount:
    """What a step brought and cost.

    Attributes:
        raised: ln by which it raised the fastest kernel of its search.
        swept: of that, what the sweep brought over the values that were written.
        was_swept: whether variants were tried.
        tokens: of its replies and their prompts.
        parts: that it had.
    """

    problem: str
    raised: float
    swept: float
    was_swept: bool
    tokens: int
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
    tokens: int
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
    """

    whole: PartAccount
    swept: PartAccount
    recalled: tuple[int, float]
    contrasts: tuple[PartContrast, ...]


@dataclass(frozen=True)
class PartRow:
    """A line of the account, as a page tells it."""

    part: str
    told: str
    steps: str
    problems: str
    gain: str
    tokens: str
    rate: str


def part_rows(account: PartsAccount | None) -> tuple[PartRow, ...]:
    """The account in lines; none where nothing was decided."""
    if account is None:
        return ()
    rows = [_row("all replies", "", account.whole)]
    problems, brought = account.recalled
    if problems:
        told = "verified before, in the knowledge base; not among the replies"
        rows.append(PartRow("recalled kernels", told, "", str(problems), f"{100 * brought:.1f} %", "0", ""))
    if account.swept.steps:
        rows.append(_row("sweep", "of steps that declared tunables, the sweep's part of the gain", account.swept))
    for one in account.contrasts:
        rows.append(_row(one.part, TOLD[one.part], one.having))
        rows.append(_row(f"without {one.part}", "other steps of the same problems", one.lacking))
        if one.difference is not None:
            rows.append(PartRow("", "the former less the latter", "", "", "", "", _told(one.difference)))
    return tuple(rows)


def _row(name: str, told: str, account: PartAccount) -> PartRow:
    return PartRow(
        part=name,
        told=told,
        steps=str(account.steps),
        problems=str(account.problems),
        gain=f"{100 * account.raised:.1f} %",
        tokens=f"{account.tokens / 1000:,.1f} k",
        rate=_told(account.rate) if account.rate else "",
    )


def _told(rate: Rate) -> str:
    interval = "" if rate.low is None or rate.high is None else f" ({rate.low:.2f} to {rate.high:.2f})"
    return f"{rate.value:.2f} %{interval}"


def parts_account(records: Sequence[ProblemRecord]) -> PartsAccount | None:
    """The account of searches; None where no step was decided."""
    steps = [one for record in records for one in step_accounts(record)]
    if not steps:
        return None
    brought = [_recalled(record) for record in records]
    return PartsAccount(
        whole=_account(steps),
        swept=_account([one for one in steps if one.was_swept], swept=True),
        recalled=(sum(gain > 0 for gain in brought), sum(brought)),
        contrasts=tuple(_contrast(steps, part) for part in Part if any(part in one.parts for one in steps)),
    )


def step_accounts(record: ProblemRecord) -> list[StepAccount]:
    """The decided steps of a search, in the order of their decisions."""
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
                tokens=_tokens(step),
                parts=_parts(record, step, fastest),
            )
        )
        if raised > 0:
            best = gain
            leaders.append((at, step.candidate))
    return found


def _parts(record: ProblemRecord, step: ReportedStep, fastest: str | None) -> frozenset[Part]:
    had = {
        Part.CODE_MEMORY: step.selected is not None and step.selected.core is not None,
        Part.CROSSOVER: step.slot in record.crossovers,
        Part.OTHER_PARENTS: bool(step.parent) and step.parent != fastest,
        Part.REPAIRS: len(step.attempts) > 1,
    }
    return frozenset(part for part, having in had.items() if having)


def _tokens(step: ReportedStep) -> int:
    replies = [attempt.generated for attempt in step.attempts if attempt.generated is not None]
    return sum(reply.prompt_tokens + reply.completion_tokens for reply in replies)


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
        tokens=sum(one.tokens for one in steps),
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
        tokens[place[one.problem]] += one.tokens / 1000
    return gains, tokens
