"""The node that remembers a step: its transition, and what that adds to the statistics."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime

from langgraph.runtime import Runtime

from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.slots import attempt_slot, step_slot
from kernelblaster.agent.state import Attempt, Choice, Diagnosis, FailureKind, RolloutState, StateUpdate
from kernelblaster.cuda_source.features import Feature, source_features
from kernelblaster.evaluation.results import Evaluation, Verdict
from kernelblaster.knowledge.credit import done_technique, executed
from kernelblaster.replay.transition import Transition, metric_deltas, reward

_DECLARED = re.compile(r"^TECHNIQUES:(.*)$", re.MULTILINE)


async def record(state: RolloutState, runtime: Runtime[ProblemContext]) -> StateUpdate:
    """Store the edge parent -> candidate. It is known by (run, slot), so repeating this changes nothing."""
    await asyncio.to_thread(_record, runtime.context, state)
    return {"transitions": state.transitions + 1}


def _record(context: ProblemContext, state: RolloutState) -> None:
    if state.diagnosis is None or state.choice is None or state.attempt is None:
        raise ValueError("record runs at the end of a step")
    transition = _transition(context, state, state.diagnosis, state.choice, state.attempt)
    context.experience.record(transition)


def _transition(
    context: ProblemContext, state: RolloutState, diagnosis: Diagnosis, choice: Choice, attempt: Attempt
) -> Transition:
    evaluation = context.files.evaluation(attempt.evaluation) if attempt.evaluation else None
    verdict = _verdict(attempt)
    comparison = evaluation.comparison if evaluation and evaluation.correct else None
    gained = _gained(context, state, attempt, evaluation)
    declared = _declared(context, state, attempt)
    return Transition(
        run=context.run,
        slot=step_slot(context, state),
        problem=str(context.problem.id),
        op_family=context.op_family,
        precision=context.precision,
        arch=context.facts.arch,
        device_kind=context.facts.kind,
        round=state.round,
        rollout=state.index,
        step=state.step,
        parent_sha256=state.incumbent.sha256,
        candidate_sha256=attempt.candidate,
        state=diagnosis.state,
        state_confidence=diagnosis.confidence,
        technique=choice.technique,
        lessons=tuple(lesson.id for lesson in choice.lessons),
        attempts=attempt.number + 1,
        verdict=verdict,
        reason=_reason(attempt),
        expected_speedup=attempt.stated_speedup,
        duplicate=attempt.failure is not None and attempt.failure.kind == FailureKind.DUPLICATE,
        headroom=_headroom(context, state),
        declared=declared,
        done=done_technique(choice.technique, declared, gained, context.experience.base().techniques),
        gained=tuple(sorted(gained)),
        reward=reward(verdict, comparison),
        metric_deltas=_deltas(context, state, evaluation),
        prompt_tokens=state.spent.prompt_tokens,
        completion_tokens=state.spent.completion_tokens,
        dollars=state.spent.dollars,
        model=context.model.name,
        recording=context.recording,
        libraries=context.libraries,
        weakly_verified=evaluation.weakly_verified if evaluation else context.problem.weakly_verified,
        started_at=datetime.fromtimestamp(state.step_started, UTC),
        speedup=comparison.speedup if comparison else None,
        speedup_low=comparison.low if comparison else None,
        speedup_high=comparison.high if comparison else None,
        decision=comparison.decision if comparison else None,
    )


def _gained(
    context: ProblemContext, state: RolloutState, attempt: Attempt, evaluation: Evaluation | None
) -> frozenset[Feature]:
    """Features that the candidate has and its parent had not, without those that its counters refute."""
    if attempt.candidate is None:
        return frozenset()
    before, after = (
        source_features(context.files.candidate(sha)) for sha in (state.incumbent.sha256, attempt.candidate)
    )
    totals = evaluation.profile.totals if evaluation and evaluation.profile else {}
    return executed(after, totals) - before


def _declared(context: ProblemContext, state: RolloutState, attempt: Attempt) -> tuple[str, ...]:
    """Techniques that the reply says it applied: its line `TECHNIQUES: a, b`."""
    found = _DECLARED.search(context.files.reply_text(attempt_slot(context, state, attempt.number)) or "")
    return tuple(re.findall(r"\w+", found[1])) if found else ()


def _headroom(context: ProblemContext, state: RolloutState) -> float | None:
    timing = context.files.evaluation(state.incumbent.evaluation).timing
    return timing.headroom if timing else None


def _verdict(attempt: Attempt) -> Verdict:
    """A step in which no reply held a source never became a program: a compile error, as the reason says."""
    return Verdict.COMPILE_ERROR if attempt.verdict is None else Verdict(attempt.verdict)


def _reason(attempt: Attempt) -> str:
    return f"{attempt.failure.kind}: {attempt.failure.reason}" if attempt.failure else ""


def _deltas(context: ProblemContext, state: RolloutState, evaluation: Evaluation | None) -> dict[str, float]:
    parent = context.files.evaluation(state.incumbent.evaluation)
    if evaluation is None or evaluation.profile is None or parent.profile is None:
        return {}
    return metric_deltas(parent.profile.totals, evaluation.profile.totals)
