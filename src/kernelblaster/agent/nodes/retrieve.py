"""The node that chooses the technique: posterior sampling over the techniques of the parent's state."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from dataclasses import dataclass

import numpy as np
from langgraph.runtime import Runtime

from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.events import Selected
from kernelblaster.agent.outcome import StopReason
from kernelblaster.agent.prompting import request_tags
from kernelblaster.agent.remembering import core_for
from kernelblaster.agent.slots import step_slot
from kernelblaster.agent.state import (
    BegunStep,
    Choice,
    Hypothesis,
    PromptLesson,
    RolloutState,
    StateUpdate,
    StepDiagnosis,
)
from kernelblaster.config import SearchPart
from kernelblaster.cuda_source.features import source_features
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.knowledge.base import KnowledgeBase
from kernelblaster.knowledge.decisions import NoTechnique, Selection, SelectionContext
from kernelblaster.knowledge.derived import observed, without_rules
from kernelblaster.knowledge.policies import POLICIES

FREE_FORM = "free_form"
"""The technique that is none."""
OTHERS_SHOWN = 2
"""Techniques that a prompt offers beside the one that was drawn."""


async def retrieve(state: RolloutState, runtime: Runtime[ProblemContext]) -> StateUpdate:
    """Draw a technique that this rollout has not tried since its last acceptance.

    What was drawn is kept before anybody is asked: the round's other rollouts on the same parent draw something else,
    and a step that is replayed has the same choice, whatever was learned since.
    """
    context = runtime.context
    diagnosis = state.diagnosis
    if diagnosis is None:
        raise ValueError("retrieve runs after classify")
    try:
        choice = state.begun.choice if state.begun else None
        if choice is None:
            async with context.flight(f"draws/r{state.round}/{state.incumbent.sha256}"):
                choice = await asyncio.to_thread(_choose, context, state, diagnosis)
    except NoTechnique:
        return {"stop": StopReason.NOTHING_TO_TRY}
    known = context.config.has(SearchPart.RETRIEVAL)
    context.emit(
        Selected(
            problem=str(context.problem.id),
            slot=step_slot(context, state),
            state=diagnosis.state,
            technique=choice.technique,
            expected_speedup=choice.expected_speedup if known else None,
            p_correct=choice.p_correct if known else None,
            evidence_count=choice.evidence_count,
            core=choice.core.id if choice.core else None,
            lessons=[lesson.id for lesson in choice.lessons],
        )
    )
    return {"choice": choice}


def _choose(context: ProblemContext, state: RolloutState, diagnosis: StepDiagnosis) -> Choice:
    """What the step will try, kept for when it is replayed. Raises NoTechnique."""
    if context.config.has(SearchPart.RETRIEVAL):
        ground = _ground(context, state, diagnosis)
        selection = _draw(context, state, ground)
        choice = choice_of(selection, lessons=context.config.has(SearchPart.LESSONS))
        choice = choice.model_copy(update={"others": _others(context, state, ground, selection)})
    else:
        choice = _free_choice(context, state)
    choice = choice.model_copy(update={"core": core_for(context, state)})
    begun = BegunStep(parent=state.incumbent.sha256, started=state.step_started, diagnosis=diagnosis, choice=choice)
    context.files.put_step(step_slot(context, state), begun)
    return choice


def _free_choice(context: ProblemContext, state: RolloutState) -> Choice:
    """No technique: the model tries what it likes, unless it is a recording that has no such answer."""
    allowed = context.model.answerable(request_tags(context, state))
    if allowed is not None and FREE_FORM not in allowed:
        raise NoTechnique("the recording has no answer without a technique", hint="record one with --ablate retrieval")
    return Choice(
        technique=FREE_FORM,
        summary="",
        how_to=[],
        checks=[],
        expected_speedup=1.0,
        p_correct=1.0,
        evidence_count=0,
        backed_off_to="ablated",
    )


@dataclass(frozen=True)
class _Ground:
    """What all draws on one parent start from.

    Attributes:
        state: the parent's bottleneck.
        where: device, problem and profile of the parent.
        base: what is known, as far as the search may use it.
    """

    state: str
    where: SelectionContext
    base: KnowledgeBase


def _ground(context: ProblemContext, state: RolloutState, diagnosis: StepDiagnosis) -> _Ground:
    evaluation = context.files.evaluation(state.incumbent.evaluation)
    where = SelectionContext(
        arch=context.facts.arch,
        device_kind=context.facts.kind,
        op_family=context.op_family,
        precision=context.precision,
        observed=_observed(context, state, evaluation),
        libraries=context.libraries,
    )
    base, config = context.experience.base(), context.config
    if not config.has(SearchPart.PAIR_LESSONS):
        base = base.without_pair_lessons
    return _Ground(diagnosis.state, where, base if config.has(SearchPart.MEMORY) else base.without_memory)


def _draw(context: ProblemContext, state: RolloutState, ground: _Ground) -> Selection:
    round, parent, slot = state.round, state.incumbent.sha256, step_slot(context, state)
    draws = context.files.draws(round, parent)
    own = draws.get(slot)
    if own is not None:
        return _select(context, state, ground, allowed=frozenset({own}), taken=Counter())
    allowed = context.model.answerable(request_tags(context, state))
    # Whoever of a generation comes first draws for all that work on this kernel: who draws what is no matter of chance.
    for index in state.siblings or [state.index]:
        drawing = state.model_copy(update={"index": index})
        if step_slot(context, drawing) not in draws:
            selection = _select(context, drawing, ground, allowed=allowed, taken=Counter(draws.values()))
            draws[step_slot(context, drawing)] = selection.technique
    context.files.put_draws(round, parent, draws)
    return _select(context, state, ground, allowed=frozenset({draws[slot]}), taken=Counter())


def _select(
    context: ProblemContext,
    state: RolloutState,
    ground: _Ground,
    *,
    allowed: frozenset[str] | None,
    taken: Counter[str],
) -> Selection:
    return ground.base.select(
        ground.state,
        ground.where,
        _generator(context, state),
        tabu=frozenset(state.tabu),
        allowed=allowed,
        taken=taken,
        policy=POLICIES.get(context.config.policy),
    )


def _others(context: ProblemContext, state: RolloutState, ground: _Ground, selection: Selection) -> list[Hypothesis]:
    """Two techniques of the state beside the one that was drawn, as the same draw ranks them.

    A replay offers none: a recording answers by the technique that was drawn, whatever its prompts offered beside it.
    """
    if not context.config.has(SearchPart.HYPOTHESES) or context.recording is not None:
        return []
    drawn = state.model_copy(update={"tabu": [*state.tabu, selection.technique]})
    try:
        ranked = _select(context, drawn, ground, allowed=None, taken=Counter())
    except NoTechnique:
        return []
    techniques = ground.base.techniques
    names = [ranked.technique, *(other.technique for other in ranked.alternatives)][:OTHERS_SHOWN]
    return [Hypothesis(technique=name, summary=techniques[name].summary) for name in names]


def _generator(context: ProblemContext, state: RolloutState) -> np.random.Generator:
    """Randomness that depends on the seed and the place in the search, not on the order rollouts run in."""
    place = f"{context.config.seed}/{step_slot(context, state)}"
    return np.random.default_rng(int.from_bytes(hashlib.sha256(place.encode()).digest()[:8], "big"))


def _observed(context: ProblemContext, state: RolloutState, evaluation: Evaluation) -> dict[str, float]:
    if evaluation.profile is None:
        return {}
    written = source_features(context.files.candidate(state.incumbent.sha256))
    told = context.config.has(SearchPart.NSIGHT_RULES)
    profile = evaluation.profile if told else without_rules(evaluation.profile)
    return observed(profile, context.facts, evaluation.timing, written)


def choice_of(selection: Selection, *, lessons: bool) -> Choice:
    """A selection as a prompt tells it, without other techniques and without a core; its lessons if `lessons`."""
    return Choice(
        technique=selection.technique,
        summary=selection.summary,
        how_to=list(selection.how_to),
        checks=list(selection.checks),
        expected_speedup=selection.expected_speedup,
        p_correct=selection.p_correct,
        evidence_count=selection.evidence_count,
        backed_off_to=selection.backed_off_to,
        lessons=[PromptLesson(id=lesson.id, text=lesson.text) for lesson in selection.lessons if lessons],
    )
