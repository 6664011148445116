"""Every step of a search as the page lists it: why it was taken, what came of it, and its exchanges with the model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from kernelblaster.agent.events import Recalled
from kernelblaster.agent.outcome import RECALLED
from kernelblaster.models.base import Message
from kernelblaster.report.packing import TextPack
from kernelblaster.report.reading import ProblemRecord, ReportedAttempt, ReportedStep
from kernelblaster.report.scales import microseconds, times
from kernelblaster.report.search_tree import (
    StepEnding,
    outcome_of,
    recalled_anchor,
    recalled_ending,
    recalled_told,
    step_anchor,
)


@dataclass(frozen=True)
class OpenText:
    """A text behind a button: its name here and its number in the pack."""

    name: str
    number: int


@dataclass(frozen=True)
class AttemptView:
    """One reply and its verdict."""

    name: str
    verdict: str
    reason: str
    texts: tuple[OpenText, ...]


@dataclass(frozen=True)
class StepView:
    """A line of the list, and what it opens.

    Attributes:
        number: of the step in its rollout; 0 for a recalled kernel, which no step made.
        result: the speed-up, or how it failed, in a word.
        technique: what was done, and what was asked for where that is another.
        refuted: what its source claims and its machine code does not have.
        cost: of its replies, and per doubling of speed where it was accepted.
    """

    anchor: str
    rollout: str
    number: int
    technique: str
    outcome: StepEnding
    result: str
    time: str
    state: str
    evidence: str
    expected: str
    refuted: str
    cost: str
    attempts: tuple[AttemptView, ...]


def step_views(record: ProblemRecord, pack: TextPack) -> tuple[StepView, ...]:
    """The list, what was recalled before all steps; long texts go into `pack`."""
    recalled = [_recalled(record, record.recalled, pack)] if record.recalled is not None else []
    return (*recalled, *(_view(record, step, pack) for step in record.steps))


def _recalled(record: ProblemRecord, known: Recalled, pack: TextPack) -> StepView:
    texts = tuple(_texts(record, known.slot, known.candidate, pack))
    return StepView(
        anchor=recalled_anchor(record.anchor),
        rollout="recalled",
        number=0,
        technique=RECALLED,
        outcome=recalled_ending(known),
        result=times(known.speedup) if known.speedup is not None else known.verdict,
        time=f"{microseconds(known.median_us)} µs" if known.median_us is not None else "",
        state="",
        evidence="",
        expected="",
        refuted="",
        cost="",
        attempts=(AttemptView(known.core, known.verdict, known.reason or recalled_told(known), texts),),
    )


def _view(record: ProblemRecord, step: ReportedStep, pack: TextPack) -> StepView:
    judged = step.last.evaluated if step.last else None
    stated = step.last.generated.stated_speedup if step.last and step.last.generated else None
    if judged and judged.speedup is not None:
        result = times(judged.speedup)
    else:
        result = step.decided.outcome if step.decided else "not ended"
    return StepView(
        anchor=step_anchor(record.anchor, step),
        rollout=step.rollout.replace("/rollout-", " · "),
        number=step.number,
        technique=step.technique_told,
        outcome=outcome_of(step),
        result=result,
        time=f"{microseconds(judged.median_us)} µs" if judged and judged.median_us is not None else "",
        state=step.classified.state if step.classified else "",
        evidence="; ".join(step.classified.evidence) if step.classified else "",
        expected=times(stated) if stated else "",
        refuted=_refuted(step),
        cost=_cost(step),
        attempts=tuple(_attempt(record, number, attempt, pack) for number, attempt in enumerate(step.attempts)),
    )


def _refuted(step: ReportedStep) -> str:
    found = step.credited
    return ", ".join(found.refuted) if found is not None and found.machine_code else ""


def _cost(step: ReportedStep) -> str:
    """A step that was not accepted has brought nothing that a doubling could be counted in."""
    cost, judged = step.cost, step.last.evaluated if step.last else None
    if not cost.tokens:
        return ""
    accepted = step.decided is not None and step.decided.accepted
    gain = math.log(judged.speedup) if accepted and judged is not None and judged.speedup else 0.0
    each = cost.per_doubling(gain)
    return f"{cost.told}; per doubling of speed: {each.told}" if each is not None else cost.told


def _attempt(record: ProblemRecord, number: int, attempt: ReportedAttempt, pack: TextPack) -> AttemptView:
    judged, generated = attempt.evaluated, attempt.generated
    candidate = judged.candidate if judged else generated.candidate if generated else None
    return AttemptView(
        name="reply" if number == 0 else f"repair {number}",
        verdict=judged.verdict if judged else "not evaluated",
        reason=(judged.reason if judged else generated.reason if generated else "")[:600],
        texts=tuple(_texts(record, attempt.slot, candidate, pack)),
    )


def _texts(record: ProblemRecord, slot: str, candidate: str | None, pack: TextPack) -> Iterator[OpenText]:
    source, exchange = record.source(candidate), record.exchange(slot)
    if source is not None:
        yield OpenText("kernel", pack.add(source))
    if exchange is not None:
        yield OpenText("prompt", pack.add("\n\n".join(_told(message) for message in exchange.request.messages)))
        yield OpenText("reply", pack.add(exchange.reply.text))


def _told(message: Message) -> str:
    return f"--- {message.role} ---\n{message.content}"
