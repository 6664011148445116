"""Lessons that a search drew from measured pairs, and how many of its prompts showed any."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from kernelblaster.knowledge.pairs import PairEffect
from kernelblaster.report.costs import cost_of
from kernelblaster.report.reading import ProblemRecord
from kernelblaster.report.scales import times


@dataclass(frozen=True)
class LessonRow:
    """What one pair taught.

    Attributes:
        place: step of the pair, `r1 · 0 · 2`.
        figure: its speed-up with the interval.
        effect: on the knowledge base.
        shown: later prompts of the search that showed the lesson.
    """

    place: str
    technique: str
    figure: str
    effect: str
    text: str
    shown: int


@dataclass(frozen=True)
class LessonsView:
    """The table, and what it says as a whole."""

    told: str
    rows: tuple[LessonRow, ...]


def lessons_view(record: ProblemRecord) -> LessonsView | None:
    """The lessons of a search; None when none were drawn and nothing was spent on it.

    What earlier ones its prompts showed stands in the prompts.
    """
    drawn = [one for event in record.lessons for one in event.drawn]
    prompts = [step.selected for step in record.steps if step.selected]
    shown = Counter(lesson for prompt in prompts for lesson in prompt.lessons)
    cost = cost_of(record.lessons)
    if not drawn and not cost.tokens:
        return None
    effects = Counter(one.effect for one in drawn)
    counted = ", ".join(f"{effects[effect]} {effect}" for effect in PairEffect if effects[effect]) or "none drawn"
    with_any = sum(bool(prompt.lessons) for prompt in prompts)
    rows = [
        LessonRow(
            place=_place(one.step),
            technique=one.technique,
            figure=f"{times(one.speedup)} [{one.low:.2f}, {one.high:.2f}]",
            effect=str(one.effect),
            text=one.text,
            shown=shown[one.lesson],
        )
        for one in drawn
    ]
    return LessonsView(
        told=f"{counted}, for {cost.told}; {with_any} of {len(prompts)} prompts showed lessons", rows=tuple(rows)
    )


def _place(slot: str) -> str:
    """`r1 · 0 · 2` of `level1/023/r1/rollout-0/step-2`."""
    round_name, rollout, step = slot.split("/")[-3:]
    return f"{round_name} · {rollout.removeprefix('rollout-')} · {step.removeprefix('step-')}"
