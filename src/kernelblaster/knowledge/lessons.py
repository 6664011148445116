"""Lessons: single sentences with a scope, shown at most three at a time, judged by what followed.

A lesson applies where every part of its scope (state, technique, operator family, precision) that is set matches. The
more it is scoped, the earlier it is shown; its counters move it up or down and hide it when it keeps doing harm. How
helpful it is gets drawn from what its counters leave possible: a lesson that was never shown gets its turn. One that
comes from measured pairs (`pairs`) is shown with what was measured, and as long as pairs do not contradict it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.knowledge.decisions import SelectionContext, ShownLesson
from kernelblaster.knowledge.pair_evidence import holds, joined_pairs, measured_line
from kernelblaster.knowledge.schema import Lesson, LessonCount
from kernelblaster.replay.transition import Transition

if TYPE_CHECKING:
    import numpy as np

SHOWN = 3
"""Most lessons per prompt; more text made results worse in every study that measured it."""
PER_SCOPE = 12
"""Most useful lessons kept for one (state, technique)."""
DUPLICATE_OVERLAP = 0.75
"""Share of common words (Jaccard) above which two lessons say the same."""

_SCOPE_WEIGHT = {"technique": 3.0, "state": 2.0, "op_family": 2.0, "precision": 1.0}
_RECORD_WEIGHT = 3.0
_NO_RECORD = (0, 0)


def retrieve(
    lessons: Iterable[Lesson],
    records: Mapping[str, tuple[int, int]],
    state: str,
    technique: str,
    context: SelectionContext,
    rng: np.random.Generator,
) -> tuple[ShownLesson, ...]:
    """The best `SHOWN` lessons that apply, by how closely their scope matches and by their record.

    The record (lesson id -> times helpful, times harmful) counts as one draw of P(helpful), from its posterior under
    a uniform prior.
    """
    where = {
        "state": state,
        "technique": technique,
        "op_family": context.op_family,
        "precision": context.precision,
    }
    scored = [
        (_scope_score(lesson, context) + _RECORD_WEIGHT * _drawn_help(records.get(lesson.id, _NO_RECORD), rng), lesson)
        for lesson in lessons
        if _applies(lesson, where)
        and holds(lesson, context.device_kind)
        and not is_harmful(records.get(lesson.id, _NO_RECORD))
    ]
    scored.sort(key=lambda pair: (-pair[0], pair[1].id))
    return tuple(
        ShownLesson(id=lesson.id, text=measured_line(lesson, context.device_kind)) for _, lesson in scored[:SHOWN]
    )


def is_harmful(record: tuple[int, int]) -> bool:
    """Whether a record says not to show a lesson: at least 4 bad outcomes, and 3 bad for each good one."""
    helpful, harmful = record
    return harmful >= 4 and harmful >= 3 * helpful


def identify(text: str) -> str:
    """Id of a lesson, from its words alone."""
    return "lesson-" + hashlib.sha256(" ".join(_words(text)).encode()).hexdigest()[:10]


def duplicate_of(lesson: Lesson, existing: Iterable[Lesson]) -> Lesson | None:
    """An existing lesson that says the same in the same scope (or with the very same words anywhere)."""
    for other in existing:
        if other.id == lesson.id:
            return other
        same_scope = (other.state, other.technique) == (lesson.state, lesson.technique)
        if same_scope and overlap(lesson.text, other.text) >= DUPLICATE_OVERLAP:
            return other
    return None


def overlap(one: str, other: str) -> float:
    """Share of common words (Jaccard) of two sentences."""
    ours, theirs = set(_words(one)), set(_words(other))
    return len(ours & theirs) / max(1, len(ours | theirs))


def scope_is_full(lesson: Lesson, existing: Iterable[Lesson]) -> bool:
    """Whether its (state, technique) already has `PER_SCOPE` lessons that are not hidden on every kind of device."""
    scope = (lesson.state, lesson.technique)
    baselines = [other for other in existing if (other.state, other.technique) == scope]
    return sum(not all(is_harmful(other.record(kind)) for kind in DeviceKind) for other in baselines) >= PER_SCOPE


def outcome_count(transition: Transition) -> LessonCount | None:
    """What a transition adds to the record of each lesson its prompt showed; None when it says nothing about them.

    An inconclusive one counts for nothing, nor does one that ended at what the emulator lacks: no advice could help.
    """
    if transition.succeeded:
        return LessonCount(helpful=1, device_kind=transition.device_kind)
    if transition.verdict is Verdict.NOT_EMULATABLE:
        return None
    if transition.verdict is not Verdict.CORRECT or transition.decision is Decision.SLOWER:
        return LessonCount(harmful=1, device_kind=transition.device_kind)
    return None


def merge_lessons(left: Iterable[Lesson], right: Iterable[Lesson]) -> tuple[Lesson, ...]:
    """Union by id; per run the larger counters, as a run's counters only grow."""
    merged: dict[str, Lesson] = {}
    for lesson in (*left, *right):
        known = merged.get(lesson.id)
        merged[lesson.id] = lesson if known is None else _joined(known, lesson)
    return tuple(merged.values())


def _applies(lesson: Lesson, where: dict[str, str]) -> bool:
    return all(getattr(lesson, part) in (None, value) for part, value in where.items())


def _drawn_help(record: tuple[int, int], rng: np.random.Generator) -> float:
    helpful, harmful = record
    return float(rng.beta(helpful + 1, harmful + 1))


def _scope_score(lesson: Lesson, context: SelectionContext) -> float:
    """A pair that was measured on the same operator family or precision counts as a scope of that kind."""
    scoped = {part for part in _SCOPE_WEIGHT if getattr(lesson, part) is not None}
    for pair in lesson.pairs:
        near = {"op_family": pair.op_family is context.op_family, "precision": pair.precision is context.precision}
        scoped |= {part for part, matches in near.items() if matches and not pair.contradicts}
    return sum(_SCOPE_WEIGHT[part] for part in scoped)


def _joined(left: Lesson, right: Lesson) -> Lesson:
    counts = dict(left.counts)
    for run, theirs in right.counts.items():
        ours = counts.get(run, theirs)
        larger = {"helpful": max(ours.helpful, theirs.helpful), "harmful": max(ours.harmful, theirs.harmful)}
        counts[run] = ours.model_copy(update=larger)
    return left.model_copy(update={"counts": counts, "pairs": joined_pairs(left.pairs, right.pairs)})


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9_.]+", text.lower())
