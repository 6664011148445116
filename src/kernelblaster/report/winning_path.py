"""The chain of kernels that led to the final one, and what each step of it changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernelblaster.agent.outcome import RECALLED
from kernelblaster.report.code import Diff, side_by_side
from kernelblaster.report.reading import ProblemRecord, ReportedStep
from kernelblaster.report.scales import times


@dataclass(frozen=True)
class PathStep:
    """One edge of the chain.

    Attributes:
        place: `r1 · 0 · 2`, or that the kernel was recalled.
        told: technique, and speed-up against its parent, where these are known.
    """

    place: str
    told: str
    diff: Diff


def winning_steps(final: str | None, steps: Sequence[ReportedStep]) -> list[ReportedStep]:
    """Accepted steps from the start to the final kernel, in this order; none where no chain leads to it."""
    way: list[ReportedStep] = []
    wanted, rollout = final, ""
    accepted = [step for step in reversed(steps) if step.decided is not None and step.decided.accepted]
    while wanted:
        found = [step for step in accepted if step.candidate == wanted and step not in way]
        found.sort(key=lambda step: (step.rollout != rollout, step.number))
        if not found:
            break
        way.append(found[0])
        wanted, rollout = found[0].parent, found[0].rollout
    return way[::-1]


def winning_path(record: ProblemRecord) -> tuple[PathStep, ...]:
    """What each edge changed; nothing where a single one leads to the final kernel, or its kernels are not stored."""
    edges = tuple(_edges(record))
    return edges if len(edges) > 1 else ()


def _edges(record: ProblemRecord) -> Iterator[PathStep]:
    steps = winning_steps(record.final, record.steps)
    began = steps[0].parent if steps else record.final
    if record.recalled is not None and began == record.recalled.candidate != record.start:
        yield from _edge(record, RECALLED, "", (record.start, began))
    for step in steps:
        judged = step.last.evaluated if step.last else None
        gained = f"{times(judged.speedup)} against its parent" if judged and judged.speedup is not None else ""
        told = ", ".join(filter(None, (step.technique_told, gained)))
        yield from _edge(record, step.place, told, (step.parent, step.candidate))


def _edge(record: ProblemRecord, place: str, told: str, ends: tuple[str | None, str | None]) -> Iterator[PathStep]:
    before, after = map(record.source, ends)
    if before is not None and after is not None:
        yield PathStep(place, told, side_by_side(before, after))
