"""Lessons from measured pairs: a kernel, what was made of it, and by how much that is faster or slower beyond noise.

A pair lesson is scoped by the bottleneck state of the parent and the technique that was credited, and holds every pair
that bears on it with its interval. It says "do this" when its pairs gained and "leave this" when they lost. Pairs that
ended the other way contradict it; it is shown while more speak for it than against it. One that is contradicted stays
in the file, so that merging an older file does not bring it back.

Pairs of one kind of device say nothing about another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.knowledge.changes import Provenance
from kernelblaster.knowledge.lessons import identify, overlap
from kernelblaster.knowledge.pair_evidence import holds, joined_pairs
from kernelblaster.knowledge.schema import FREE_FORM, KnowledgeDocument, Lesson, PairMeasurement
from kernelblaster.problems.families import OpFamily
from kernelblaster.replay.transition import Transition

SHORTEST, LONGEST = 20, 200
"""Characters of a pair lesson."""
PER_SCOPE = 4
"""Pair lessons that are in force for one state and technique."""
SAME = 0.5
"""Share of common words (Jaccard) above which two pair lessons of one scope say the same."""


class PairEffect(StrEnum):
    """What a pair did to the knowledge base."""

    ADDED = "added"
    CONFIRMED = "confirmed"
    CONTRADICTED = "contradicted"
    REFUSED = "refused"


@dataclass(frozen=True)
class PairFinding:
    """What was read off a pair. Ids are of pair lessons that are known for its state and technique; empty for none."""

    text: str = ""
    same_as: str = ""
    contradicts: str = ""


@dataclass(frozen=True)
class Learned:
    """One effect of a finding.

    Attributes:
        lesson: id; empty where there is none.
        text: of the lesson, or why the finding was refused.
    """

    effect: PairEffect
    lesson: str
    text: str


def is_telling(transition: Transition) -> bool:
    """Whether a lesson can be drawn from a transition: both correct, and apart beyond noise.

    The parent of a transition is always correct. A weakly verified candidate teaches nothing about speed.
    """
    decided = transition.verdict is Verdict.CORRECT and transition.decision in (Decision.FASTER, Decision.SLOWER)
    return (
        decided and transition.candidate_sha256 is not None and not (transition.duplicate or transition.weakly_verified)
    )


def known_for(document: KnowledgeDocument, transition: Transition) -> tuple[Lesson, ...]:
    """Pair lessons of the transition's state and technique that are in force on its kind of device."""
    scope = _scope(document, transition)
    return tuple(
        lesson
        for lesson in document.lessons
        if lesson.pairs and (lesson.state, lesson.technique) == scope and holds(lesson, transition.device_kind)
    )


def learn(
    document: KnowledgeDocument, transition: Transition, finding: PairFinding, provenance: Provenance
) -> tuple[KnowledgeDocument, list[Learned]]:
    """The document with what a telling transition teaches, and each effect.

    A lesson is confirmed only by a pair that ended as its pairs did, and contradicted only by one that ended otherwise,
    whatever the finding claims.
    """
    lessons = {lesson.id: lesson for lesson in known_for(document, transition)}
    effects: list[Learned] = []
    for name, contradicts in ((finding.same_as, False), (finding.contradicts, True)):
        if not name:
            continue
        lesson = lessons.get(name)
        if lesson is None:
            effects.append(Learned(PairEffect.REFUSED, name, "no such lesson of this state and technique"))
        elif _opposes(lesson, transition) is not contradicts:
            ended = "the other way" if not contradicts else "the same way"
            effects.append(Learned(PairEffect.REFUSED, name, f"the pair ended {ended}"))
        else:
            document, effect = _with_pair(document, lesson, transition)
            effects.append(effect)
    if finding.text.strip():
        document, effect = _told(document, transition, " ".join(finding.text.split()), provenance)
        effects.append(effect)
    return document, effects


def count_shown(document: KnowledgeDocument, transition: Transition) -> KnowledgeDocument:
    """Count a telling transition for or against the pair lessons that its prompt showed and that ask for what it did.

    A lesson that says what to leave is not counted: that it was heeded cannot be told from the outcome.
    """
    if not is_telling(transition):
        return document
    scope = _scope(document, transition)
    for lesson in document.lessons:
        if lesson.id in transition.lessons and lesson.pairs and lesson.technique == scope[1] and _gains(lesson):
            document, _ = _with_pair(document, lesson, transition)
    return document


def _told(
    document: KnowledgeDocument, transition: Transition, text: str, provenance: Provenance
) -> tuple[KnowledgeDocument, Learned]:
    """A sentence: a new lesson, or another pair for or against one that says the same."""
    if not SHORTEST <= len(text) <= LONGEST or not text.isprintable():
        return document, Learned(PairEffect.REFUSED, "", f"a lesson has {SHORTEST} to {LONGEST} printable characters")
    state, technique = _scope(document, transition)
    same = _saying_the_same(document.lessons, text, state, technique)
    if same is not None:
        if any(pair.transition == transition.digest and not pair.contradicts for pair in same.pairs):
            return document, Learned(PairEffect.ADDED, same.id, same.text)
        if not same.pairs:
            return document, Learned(PairEffect.REFUSED, same.id, "a lesson already says it")
        return _with_pair(document, same, transition)
    if len(known_for(document, transition)) >= PER_SCOPE:
        return document, Learned(PairEffect.REFUSED, "", "this state and technique have enough lessons")
    lesson = Lesson(
        id=identify(text),
        text=text,
        state=state,
        technique=technique,
        provenance=provenance,
        pairs=(_measurement(transition, contradicts=False),),
    )
    grown = document.model_copy(update={"lessons": (*document.lessons, lesson)})
    return grown, Learned(PairEffect.ADDED, lesson.id, text)


def _saying_the_same(lessons: Sequence[Lesson], text: str, state: str | None, technique: str | None) -> Lesson | None:
    for lesson in lessons:
        in_scope = (lesson.state, lesson.technique) == (state, technique)
        if lesson.id == identify(text) or (in_scope and overlap(lesson.text, text) >= SAME):
            return lesson
    return None


def _with_pair(
    document: KnowledgeDocument, lesson: Lesson, transition: Transition
) -> tuple[KnowledgeDocument, Learned]:
    opposes = _opposes(lesson, transition)
    pairs = joined_pairs(lesson.pairs, [_measurement(transition, contradicts=opposes)])
    changed = lesson.model_copy(update={"pairs": pairs})
    others = tuple(changed if known.id == lesson.id else known for known in document.lessons)
    effect = PairEffect.CONTRADICTED if opposes else PairEffect.CONFIRMED
    if pairs == lesson.pairs:
        return document, Learned(effect, lesson.id, lesson.text)
    return document.model_copy(update={"lessons": others}), Learned(effect, lesson.id, lesson.text)


def _opposes(lesson: Lesson, transition: Transition) -> bool:
    return _gains(lesson) is not (transition.decision is Decision.FASTER)


def _gains(lesson: Lesson) -> bool:
    """Whether a pair lesson says what to do: pairs that speak for it gained."""
    return any((pair.speedup > 1) is not pair.contradicts for pair in lesson.pairs)


def _scope(document: KnowledgeDocument, transition: Transition) -> tuple[str | None, str | None]:
    """State and technique of a transition, as far as the document knows them."""
    technique = transition.credited
    known = technique in document.techniques or technique in document.proposals
    named = technique if known and technique != FREE_FORM else None
    return transition.state if transition.state in document.states else None, named


def _measurement(transition: Transition, *, contradicts: bool) -> PairMeasurement:
    """Raises ValueError for a transition without a comparison."""
    if transition.speedup is None or transition.speedup_low is None or transition.speedup_high is None:
        raise ValueError("a pair was compared")
    return PairMeasurement(
        transition=transition.digest,
        problem=transition.problem,
        op_family=OpFamily(transition.op_family),
        arch=transition.arch,
        device_kind=transition.device_kind,
        precision=transition.precision,
        speedup=transition.speedup,
        low=transition.speedup_low,
        high=transition.speedup_high,
        contradicts=contradicts,
    )
