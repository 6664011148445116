"""The node that remembers a step: its transition, and what that adds to the statistics."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime

from langgraph.runtime import Runtime

from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.events import Credited
from kernelblaster.agent.slots import attempt_slot, step_slot
from kernelblaster.agent.state import Attempt, Choice, FailureKind, RolloutState, StateUpdate, StepDiagnosis
from kernelblaster.config import SearchPart
from kernelblaster.evaluation.results import Evaluation, Verdict
from kernelblaster.knowledge.credit import Done, declared_techniques, done_technique, what_was_done
from kernelblaster.replay.transition import Transition, metric_deltas, reward


async def record(state: RolloutState, runtime: Runtime[ProblemContext]) -> StateUpdate:
    """Store the edge parent -> candidate. It is known by (run, slot), so repeating this changes nothing."""
    credited = await asyncio.to_thread(_record, runtime.context, state)
    runtime.context.emit(credited)
    return {"transitions": state.transitions + 1}


def _record(context: ProblemContext, state: RolloutState) -> Credited:
    if state.diagnosis is None or state.choice is None or state.attempt is None:
        raise ValueError("record runs at the end of a step")
    step = _FinishedStep(
        diagnosis=state.diagnosis,
        choice=state.choice,
        attempt=state.attempt,
        parent=context.files.evaluation(state.incumbent.evaluation),
        evaluation=context.files.evaluation(state.attempt.evaluation) if state.attempt.evaluation else None,
    )
    found = _found(context, state, step)
    transition = _transition(context, state, step, found)
    context.experience.record(transition)
    return _credited(transition, found)


@dataclass(frozen=True)
class _FinishedStep:
    """What a step has come to: its last attempt, and the evaluations of parent and candidate."""

    diagnosis: StepDiagnosis
    choice: Choice
    attempt: Attempt
    parent: Evaluation
    evaluation: Evaluation | None


def _transition(context: ProblemContext, state: RolloutState, step: _FinishedStep, found: Done) -> Transition:
    choice, attempt, evaluation = step.choice, step.attempt, step.evaluation
    verdict = _verdict(attempt)
    comparison = evaluation.comparison if evaluation and evaluation.correct else None
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
        state=step.diagnosis.state,
        state_confidence=step.diagnosis.confidence,
        technique=choice.technique,
        lessons=tuple(lesson.id for lesson in choice.lessons),
        attempts=attempt.number + 1,
        verdict=verdict,
        reason=_reason(attempt),
        expected_speedup=attempt.stated_speedup,
        duplicate=attempt.failure is not None and attempt.failure.kind == FailureKind.DUPLICATE,
        headroom=step.parent.timing.headroom if step.parent.timing else None,
        declared=declared,
        done=done_technique(choice.technique, declared, found.gained, context.experience.base().techniques, found.more),
        gained=tuple(sorted(found.gained)),
        reward=reward(verdict, comparison),
        metric_deltas=_deltas(step),
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


def _found(context: ProblemContext, state: RolloutState, step: _FinishedStep) -> Done:
    candidate, evaluation = step.attempt.candidate, step.evaluation
    if candidate is None:
        return Done()
    parent, made = (context.files.candidate(sha) for sha in (state.incumbent.sha256, candidate))
    heard = context.config.has(SearchPart.SASS_CREDIT)
    before = step.parent.machine if heard else None
    after = evaluation.machine if heard and evaluation else None
    totals = evaluation.profile.totals if evaluation and evaluation.profile else {}
    return what_was_done((parent, before), (made, after), totals)


def _credited(transition: Transition, found: Done) -> Credited:
    return Credited(
        problem=transition.problem,
        slot=transition.slot,
        asked=transition.technique,
        declared=list(transition.declared),
        credited=transition.credited,
        gained=sorted(found.gained),
        refuted=sorted(found.refuted),
        machine_code=found.compiled,
    )


def _declared(context: ProblemContext, state: RolloutState, attempt: Attempt) -> tuple[str, ...]:
    """Techniques that the reply says it applied, of those that are known: its line `TECHNIQUES: a, b`."""
    text = context.files.reply_text(attempt_slot(context, state, attempt.number)) or ""
    return declared_techniques(text, context.experience.base().techniques)


def _verdict(attempt: Attempt) -> Verdict:
    """A step in which no reply held a source never became a program: a compile error, as the reason says."""
    return Verdict.COMPILE_ERROR if attempt.verdict is None else Verdict(attempt.verdict)


def _reason(attempt: Attempt) -> str:
    return f"{attempt.failure.kind}: {attempt.failure.reason}" if attempt.failure else ""


def _deltas(step: _FinishedStep) -> dict[str, float]:
    if step.evaluation is None or step.evaluation.profile is None or step.parent.profile is None:
        return {}
    return metric_deltas(step.parent.profile.totals, step.evaluation.profile.totals)
