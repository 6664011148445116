"""Judging typed changes and adding them to a document.

Every check is mechanical: references must exist, thresholds stay inside declared bounds, retirement needs statistics,
lessons must be new. An accepted change is logged once (its id comes from its content and run, so that a resumed run
adds nothing twice) and the curated part of the document is left as it is.
"""

from __future__ import annotations

import hashlib
import math
from datetime import datetime

from kernelblaster.knowledge.changes import (
    AddLesson,
    AddTechnique,
    AdjustRule,
    KnowledgeChange,
    Provenance,
    RetireTechnique,
)
from kernelblaster.knowledge.expressions import conditions
from kernelblaster.knowledge.lessons import duplicate_of, identify, scope_is_full
from kernelblaster.knowledge.schema import ChangeEntry, KnowledgeDocument, Lesson, Proposal, Rule, Success, Sums
from kernelblaster.knowledge.statistics import total
from kernelblaster.replay.transition import Transition

RELEASE_SUCCESSES = 3
RELEASE_PROBLEMS = 2
"""A quarantined technique is proven by so many successes on so many problems, on one kind of device."""
OPEN_PROPOSALS = 24
"""Most techniques in quarantine at once; each costs trials."""
RETIRE_ATTEMPTS = 8
"""Fewest attempts that can retire a technique."""
RETIRE_P_CORRECT = 0.25
RETIRE_GAIN = math.log(1.02)
"""A technique is retired when it rarely works, or when even mean + 2 standard errors of its gain is below this."""


class ChangeRefused(Exception):
    """A change that is not accepted; the message says why."""


def amend(
    document: KnowledgeDocument, change: KnowledgeChange, provenance: Provenance, now: datetime
) -> tuple[KnowledgeDocument, str]:
    """The document with the change, and a line for the log: what was applied, or why it was refused."""
    entry = ChangeEntry(id=_identify(change, provenance), applied_at=now, provenance=provenance, change=change)
    if any(known.id == entry.id for known in document.changes):
        return document, f"{change.kind}: refused: already applied"
    try:
        amended, line = _effect(document, entry)
    except ChangeRefused as refusal:
        return document, f"{change.kind}: refused: {refusal}"
    logged = amended.model_copy(update={"changes": (*amended.changes, entry)})
    return logged, f"{change.kind}: applied: {line}"


def count_success(document: KnowledgeDocument, transition: Transition) -> KnowledgeDocument:
    """Credit a success to the proposal it tried, if that is still in quarantine."""
    proposal = document.proposals.get(transition.technique)
    if proposal is None or not transition.succeeded or transition.weakly_verified or is_released(proposal):
        return document
    success = Success(transition=transition.digest, problem=transition.problem, device_kind=transition.device_kind)
    credited = proposal.model_copy(update={"successes": (*proposal.successes, success)})
    return document.model_copy(update={"proposals": {**document.proposals, transition.technique: credited}})


def is_released(proposal: Proposal) -> bool:
    """Whether a proposed technique has proven itself on one kind of device."""
    for kind in {success.device_kind for success in proposal.successes}:
        ours = [success for success in proposal.successes if success.device_kind is kind]
        if len(ours) >= RELEASE_SUCCESSES and len({success.problem for success in ours}) >= RELEASE_PROBLEMS:
            return True
    return False


def find_rule(document: KnowledgeDocument, rule_id: str) -> Rule | None:
    """The rule with this id, as curated."""
    rules = (rule for state in document.states.values() for rule in state.rules)
    return next((rule for rule in rules if rule.id == rule_id), None)


def _identify(change: KnowledgeChange, provenance: Provenance) -> str:
    return hashlib.sha256(f"{provenance.run}\0{change.model_dump_json()}".encode()).hexdigest()[:12]


def _effect(document: KnowledgeDocument, entry: ChangeEntry) -> tuple[KnowledgeDocument, str]:
    match entry.change:
        case AddLesson():
            return _add_lesson(document, entry.change, entry.provenance)
        case AdjustRule():
            return document, _check_adjustment(document, entry.change)
        case AddTechnique():
            return _add_technique(document, entry.change, entry)
        case RetireTechnique():
            return document, _check_retirement(document, entry.change)


def _add_lesson(
    document: KnowledgeDocument, change: AddLesson, provenance: Provenance
) -> tuple[KnowledgeDocument, str]:
    if change.state is not None:
        _require_state(document, change.state)
    if change.technique is not None and not _knows(document, change.technique):
        raise ChangeRefused(f"no technique {change.technique}")
    lesson = Lesson(
        id=identify(change.text),
        text=" ".join(change.text.split()),
        state=change.state,
        technique=change.technique,
        op_family=change.op_family,
        precision=change.precision,
        provenance=provenance,
    )
    duplicate = duplicate_of(lesson, document.lessons)
    if duplicate is not None:
        raise ChangeRefused(f"{duplicate.id} already says it")
    if scope_is_full(lesson, document.lessons):
        raise ChangeRefused("this state and technique have enough lessons")
    return document.model_copy(update={"lessons": (*document.lessons, lesson)}), lesson.id


def _check_adjustment(document: KnowledgeDocument, change: AdjustRule) -> str:
    rule = find_rule(document, change.rule)
    if rule is None:
        raise ChangeRefused(f"no rule {change.rule}")
    movable = [
        condition
        for condition in conditions(rule.when)
        if condition.metric == change.metric and condition.bounds is not None
    ]
    if not movable:
        raise ChangeRefused(f"{change.metric} has no movable threshold in {change.rule}")
    for condition in movable:
        low, high = condition.bounds or (condition.value, condition.value)
        if not low <= change.value <= high:
            raise ChangeRefused(f"{change.value:g} lies outside {low:g} to {high:g}")
    return f"{change.rule}: {change.metric} at {change.value:g}"


def _add_technique(
    document: KnowledgeDocument, change: AddTechnique, entry: ChangeEntry
) -> tuple[KnowledgeDocument, str]:
    if _knows(document, change.id):
        raise ChangeRefused(f"technique {change.id} exists")
    for state in change.states:
        _require_state(document, state)
    if sum(not is_released(proposal) for proposal in document.proposals.values()) >= OPEN_PROPOSALS:
        raise ChangeRefused("too many techniques are in quarantine")
    proposal = Proposal(technique=change, provenance=entry.provenance, proposed_at=entry.applied_at)
    proposals = {**document.proposals, change.id: proposal}
    return document.model_copy(update={"proposals": proposals}), f"{change.id}, in quarantine"


def _check_retirement(document: KnowledgeDocument, change: RetireTechnique) -> str:
    _require_state(document, change.state)
    if not _knows(document, change.technique):
        raise ChangeRefused(f"no technique {change.technique}")
    sums = total(
        row.sums
        for row in document.statistics
        if (row.cell.state, row.cell.technique, row.cell.arch, row.cell.device_kind)
        == (change.state, change.technique, change.arch, change.device_kind)
        and not row.cell.weakly_verified
    )
    if sums.attempts < RETIRE_ATTEMPTS:
        raise ChangeRefused(f"{sums.attempts} attempts are too few, {RETIRE_ATTEMPTS} are needed")
    if 1 - sums.failed / sums.attempts > RETIRE_P_CORRECT and _optimistic_gain(sums) >= RETIRE_GAIN:
        raise ChangeRefused(f"{sums.attempts} attempts do not show it to be useless")
    return f"{change.technique} in {change.state} on {change.arch} ({change.device_kind})"


def _optimistic_gain(sums: Sums) -> float:
    """Mean log speed-up plus two standard errors; infinite where too few were compared."""
    if sums.n < 3:
        return math.inf
    mean = sums.sum_log / sums.n
    variance = max(0.0, sums.sum_sq_log - sums.n * mean**2) / (sums.n - 1)
    return mean + 2 * math.sqrt(variance / sums.n)


def _require_state(document: KnowledgeDocument, state: str) -> None:
    if state not in document.states:
        raise ChangeRefused(f"no state {state}")


def _knows(document: KnowledgeDocument, technique: str) -> bool:
    return technique in document.techniques or technique in document.proposals
