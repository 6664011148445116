"""The nodes that end a step and a rollout: accept or keep the parent, go on or stop. Decided by code alone."""

from __future__ import annotations

import asyncio

from langgraph.runtime import Runtime

from kernelblaster.agent.archive import ArchivedAttempt
from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.events import Decided
from kernelblaster.agent.nodes.start import rollout_stopped
from kernelblaster.agent.outcome import Incumbent, RolloutResult, StopReason
from kernelblaster.agent.slots import result_slot, rollout_slot, step_slot
from kernelblaster.agent.state import Attempt, Choice, RolloutState, StateUpdate, Tried
from kernelblaster.agent.summary import changed_metrics
from kernelblaster.config import SearchConfig
from kernelblaster.evaluation.results import Comparison, Decision

REMEMBERED_STEPS = 6
"""Latest steps of a rollout that its prompts tell about."""
REASON_CHARACTERS = 160
"""Of a failure's reason that later prompts tell."""
CONVERGED_AFTER = 3
"""Inconclusive steps in a row after which a rollout counts as converged."""


async def decide(state: RolloutState, runtime: Runtime[ProblemContext]) -> StateUpdate:
    """Accept the candidate only when it is correct and faster beyond noise; else keep the parent."""
    context = runtime.context
    if state.choice is None or state.attempt is None:
        raise ValueError("decide runs at the end of a step")
    comparison = _comparison(context, state.attempt)
    tried = _tried(state.choice, state.attempt, comparison)
    if context.archive:
        changes = await asyncio.to_thread(_changes, context, state.incumbent, state.attempt)
        tried = tried.model_copy(update={"changes": changes, "crossover": state.donor is not None})
    elif context.recording is None:
        context.notes.ended(state.incumbent.sha256, rollout_slot(context, state.round, state.index), tried)
    changed = _after(state, tried, state.attempt, comparison)
    after = state.model_copy(update=changed)
    if context.archive:
        await asyncio.to_thread(context.files.put_attempt, _archived(context, state, after, tried))
    context.emit(
        Decided(
            problem=str(context.problem.id),
            slot=step_slot(context, state),
            technique=tried.technique,
            outcome=tried.outcome,
            accepted=tried.accepted,
            gain=after.incumbent.gain,
        )
    )
    return {**changed, "choice": None, "attempt": None, "stop": stop_reason(after, context.config)}


async def finish(state: RolloutState, runtime: Runtime[ProblemContext]) -> StateUpdate:
    """Hand the rollout's result to the problem. One that a budget ended goes on when there is a larger one."""
    context = runtime.context
    if state.stop is None:
        raise ValueError("a rollout finishes with a reason")
    result = RolloutResult(
        round=state.round,
        index=state.index,
        incumbent=state.incumbent,
        stop=state.stop,
        steps=state.step,
        transitions=state.transitions,
        verdicts=state.verdicts,
        generation=state.generation,
    )
    if state.stop is not StopReason.BUDGET:
        slot = result_slot(context, state.round, state.index, state.generation)
        await asyncio.to_thread(context.files.put_rollout, slot, result)
    context.emit(rollout_stopped(context, result))
    return {"finished": [result]}


def stop_reason(state: RolloutState, config: SearchConfig) -> StopReason | None:
    """Why a rollout should not take another step; None when it should."""
    if state.step >= (state.generation or config.steps):
        return StopReason.STEPS
    if state.inconclusive >= CONVERGED_AFTER:
        return StopReason.CONVERGED
    if state.idle >= config.patience:
        return StopReason.PATIENCE
    return None


def _comparison(context: ProblemContext, attempt: Attempt) -> Comparison | None:
    """Of an evaluation that was made or read a moment ago, and is still in memory."""
    if attempt.evaluation is None or attempt.failure is not None:
        return None
    return context.files.evaluation(attempt.evaluation).comparison


def _tried(choice: Choice, attempt: Attempt, comparison: Comparison | None) -> Tried:
    if attempt.failure is not None:
        return Tried(
            technique=choice.technique,
            outcome=attempt.failure.kind,
            stated_speedup=attempt.stated_speedup,
            reason=attempt.failure.reason[:REASON_CHARACTERS],
        )
    decision = comparison.decision if comparison else Decision.INCONCLUSIVE
    return Tried(
        technique=choice.technique,
        outcome=decision,
        speedup=comparison.speedup if comparison else None,
        stated_speedup=attempt.stated_speedup,
        accepted=decision is Decision.FASTER,
    )


def _after(state: RolloutState, tried: Tried, attempt: Attempt, comparison: Comparison | None) -> StateUpdate:
    """The fields that a finished step changes."""
    changed: StateUpdate = {"tried": [*state.tried, tried][-REMEMBERED_STEPS:]}
    if tried.accepted and comparison and attempt.candidate and attempt.evaluation:
        incumbent = Incumbent(
            sha256=attempt.candidate,
            evaluation=attempt.evaluation,
            gain=state.incumbent.gain * comparison.speedup,
        )
        return {**changed, "incumbent": incumbent, "tabu": [], "idle": 0, "inconclusive": 0}
    inconclusive = state.inconclusive + 1 if tried.outcome == Decision.INCONCLUSIVE else 0
    tabu = [*state.tabu, tried.technique]
    return {**changed, "tabu": tabu, "idle": state.idle + 1, "inconclusive": inconclusive}


def _changes(context: ProblemContext, parent: Incumbent, attempt: Attempt) -> list[str]:
    """The metrics by which a correct candidate differs most from its parent."""
    if attempt.evaluation is None or attempt.failure is not None:
        return []
    return changed_metrics(context.files.evaluation(parent.evaluation), context.files.evaluation(attempt.evaluation))


def _archived(context: ProblemContext, state: RolloutState, after: RolloutState, tried: Tried) -> ArchivedAttempt:
    attempt = state.attempt
    made = after.incumbent if tried.accepted else None
    timing = context.files.evaluation(made.evaluation).timing if made else None
    return ArchivedAttempt(
        slot=step_slot(context, state),
        round=state.round,
        generation=state.generation,
        index=state.index,
        parent=state.incumbent.sha256,
        tried=tried,
        candidate=attempt.candidate if attempt else None,
        verdict=attempt.verdict if attempt else None,
        made=made,
        headroom=timing.headroom if timing else None,
    )
