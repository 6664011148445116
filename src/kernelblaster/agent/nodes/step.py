"""Nodes that open a step: check that another one may start, and name the parent's bottleneck."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Set

from langgraph.runtime import Runtime
from pydantic import BaseModel

from kernelblaster.agent.asking import Unanswered, ask, frozen_request
from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.events import Classified, StepStarted
from kernelblaster.agent.outcome import StopReason
from kernelblaster.agent.prompting import classify_request
from kernelblaster.agent.slots import classify_slot, step_slot
from kernelblaster.agent.state import BegunStep, RolloutState, Spent, StateUpdate, StepDiagnosis
from kernelblaster.config import SearchPart
from kernelblaster.cuda_source.features import Feature, source_features
from kernelblaster.devices.profiles import Profile, ProfileSource
from kernelblaster.errors import BudgetExceeded
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.knowledge.base import KnowledgeBase
from kernelblaster.knowledge.decisions import Cause, Classification
from kernelblaster.knowledge.derived import without_rules
from kernelblaster.models.base import NoRecordedReply
from kernelblaster.models.replies import UnusableReply, parse_json


class ClassifyReply(BaseModel):
    """What the model answers when it is asked for the bottleneck."""

    state: str
    why: str = ""


async def open_step(state: RolloutState, runtime: Runtime[ProblemContext]) -> StateUpdate:
    """Begin the next step, unless the incumbent leaves nothing to gain or the time is over.

    A step that an earlier start began begins the same way, also when time is over, because its outcome is known.
    """
    context = runtime.context
    opened = state.model_copy(update={"step": state.step + 1})
    begun, evaluation = await asyncio.to_thread(_stored, context, opened)
    try:
        if begun is None:
            context.check_time()
    except BudgetExceeded:
        return {"stop": StopReason.BUDGET}
    timing = evaluation.timing
    if timing is not None and context.nothing_left(timing.headroom, timing.attainable_us):
        return {"stop": StopReason.NEAR_ATTAINABLE}
    context.emit(
        StepStarted(
            problem=str(context.problem.id),
            slot=step_slot(context, opened),
            parent=state.incumbent.sha256,
            gain=state.incumbent.gain,
        )
    )
    started = begun.started if begun else time.time()
    return {"step": opened.step, "step_started": started, "begun": begun, "spent": Spent()}


def _stored(context: ProblemContext, opened: RolloutState) -> tuple[BegunStep | None, Evaluation]:
    """The step as an earlier start began it, and the evaluation of its parent."""
    begun = context.files.find_step(step_slot(context, opened), opened.incumbent.sha256)
    return begun, context.files.evaluation(opened.incumbent.evaluation)


async def classify(state: RolloutState, runtime: Runtime[ProblemContext]) -> StateUpdate:
    """Name the bottleneck of the incumbent, once per incumbent. The model is asked only when rules do not decide."""
    if state.diagnosis is not None and state.diagnosis.parent == state.incumbent.sha256:
        return {}
    context = runtime.context
    try:
        diagnosis = state.begun.diagnosis if state.begun else await _diagnose(context, state)
    except Unanswered as question:
        return {"pending": [question.request]}
    except BudgetExceeded:
        # The step has not begun in earnest: continued later, it opens again under its number.
        return {"stop": StopReason.BUDGET, "step": state.step - 1}
    context.emit(
        Classified(
            problem=str(context.problem.id),
            slot=step_slot(context, state),
            state=diagnosis.state,
            confidence=diagnosis.confidence,
            decided_by=diagnosis.decided_by,
            evidence=diagnosis.evidence,
        )
    )
    return {"diagnosis": diagnosis}


async def _diagnose(context: ProblemContext, state: RolloutState) -> StepDiagnosis:
    """By rules, or by the model where they do not decide; kept, for rules and states change as others learn."""
    evaluation = await asyncio.to_thread(context.files.evaluation, state.incumbent.evaluation)
    base = await asyncio.to_thread(context.experience.base)
    written = source_features(context.files.candidate(state.incumbent.sha256))
    ruled = _by_rules(context, base, evaluation, written)
    diagnosis = _diagnosis(state, ruled, "rules")
    if not context.config.has(SearchPart.CLASSIFICATION):
        diagnosis = _nameless(state, base)
    elif not ruled.decided:
        diagnosis = await _by_model(context, state, base, evaluation, ruled)
    begun = BegunStep(parent=state.incumbent.sha256, started=state.step_started, diagnosis=diagnosis)
    await asyncio.to_thread(context.files.put_step, step_slot(context, state), begun)
    return diagnosis


def _nameless(state: RolloutState, base: KnowledgeBase) -> StepDiagnosis:
    """What stands for a diagnosis where classification is switched off."""
    return StepDiagnosis(
        parent=state.incumbent.sha256, state=base.document.fallback_state, confidence=0.0, decided_by="ablated"
    )


def _by_rules(
    context: ProblemContext, base: KnowledgeBase, evaluation: Evaluation, written: Set[Feature]
) -> Classification:
    profile = evaluation.profile or Profile(source=ProfileSource.EVENTS, kernels=[], totals={})
    if not context.config.has(SearchPart.NSIGHT_RULES):
        profile = without_rules(profile)
    return base.classify(profile, context.facts, evaluation.timing, written)


def _diagnosis(state: RolloutState, ruled: Classification, decided_by: str) -> StepDiagnosis:
    return StepDiagnosis(
        parent=state.incumbent.sha256,
        state=ruled.state,
        confidence=ruled.confidence,
        evidence=list(ruled.evidence),
        causes=[_cause_line(cause) for cause in ruled.causes if cause.state != ruled.state or cause.gain],
        decided_by=decided_by,
    )


def _cause_line(cause: Cause) -> str:
    gain = f", mending it is worth at most {cause.gain:.2f}x" if cause.gain else ""
    return f"{cause.state} (confidence {cause.confidence:.2f}{gain})"


async def _by_model(
    context: ProblemContext, state: RolloutState, base: KnowledgeBase, evaluation: Evaluation, ruled: Classification
) -> StepDiagnosis:
    """The model's choice among the known states; the rules' best guess when it has no usable reply."""
    slot = classify_slot(context, state)
    request = await frozen_request(context, slot, lambda: classify_request(context, state, base, evaluation, ruled))
    undecided = _diagnosis(state, ruled, "rules (undecided)")
    try:
        reply = await ask(context, request)
        choice = parse_json(reply.text, ClassifyReply)
    except (NoRecordedReply, UnusableReply):
        return undecided
    if choice.state not in base.states:
        return undecided
    evidence = [*ruled.evidence, f"model: {choice.why[:300]}"]
    return undecided.model_copy(update={"state": choice.state, "evidence": evidence, "decided_by": "model"})
