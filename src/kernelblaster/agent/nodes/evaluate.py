"""The node that has a candidate judged, and the choice between repairing and going on."""

from __future__ import annotations

from langgraph.runtime import Runtime

from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.evaluating import Judged, judge
from kernelblaster.agent.events import Evaluated
from kernelblaster.agent.nodes.generate import SHORT_HASH
from kernelblaster.agent.slots import attempt_slot
from kernelblaster.agent.state import Attempt, Failure, RolloutState, StateUpdate
from kernelblaster.evaluation.results import Evaluation, Verdict

FINAL_VERDICTS = frozenset({Verdict.REWARD_HACK})
"""Verdicts that no repair is asked for: the attempt to fool the judge is recorded as it is."""

_LOG_CHARACTERS = 3000
"""Of a failure's log that the state keeps for the repair prompt."""


async def evaluate(state: RolloutState, runtime: Runtime[ProblemContext]) -> StateUpdate:
    """Judge the candidate against its parent; after a sweep its best variants, until one is correct."""
    context = runtime.context
    attempt = state.attempt
    if attempt is None or attempt.candidate is None:
        raise ValueError("evaluate runs after a reply with a source")
    seen, verdicts = dict(state.seen), dict(state.verdicts)
    for candidate in (attempt.candidate, *attempt.next_best):
        judged = await judge(context, candidate, baseline=state.incumbent.sha256)
        context.emit(_event(context, state, attempt, judged))
        verdict = str(judged.evaluation.verdict)
        seen[candidate[:SHORT_HASH]] = verdict
        verdicts[verdict] = verdicts.get(verdict, 0) + 1
        found = {"candidate": candidate, "evaluation": judged.key, "verdict": verdict}
        attempt = attempt.model_copy(update={**found, "failure": failure_of(judged.evaluation)})
        if judged.evaluation.correct or verdict in FINAL_VERDICTS:
            break
    return {"attempt": attempt, "seen": seen, "verdicts": verdicts}


def repairable(state: RolloutState, repairs: int) -> bool:
    """Whether the attempt failed in a way the model may mend, and a repair is left."""
    attempt = state.attempt
    if attempt is None or attempt.failure is None or attempt.beyond_repair:
        return False
    return attempt.number < repairs and attempt.failure.kind not in FINAL_VERDICTS


def failure_of(evaluation: Evaluation) -> Failure | None:
    """What a repair is told of a verdict; None for a correct candidate."""
    if evaluation.correct:
        return None
    return Failure(kind=evaluation.verdict, reason=evaluation.reason, log=evaluation.log[:_LOG_CHARACTERS])


def _event(context: ProblemContext, state: RolloutState, attempt: Attempt, judged: Judged) -> Evaluated:
    evaluation = judged.evaluation
    comparison = evaluation.comparison
    return Evaluated(
        problem=str(context.problem.id),
        slot=attempt_slot(context, state, attempt.number),
        candidate=evaluation.source_sha256,
        verdict=evaluation.verdict,
        reason=evaluation.reason,
        speedup=comparison.speedup if comparison else None,
        decision=comparison.decision if comparison else None,
        median_us=evaluation.timing.median_us if evaluation.timing else None,
        reused=judged.reused,
    )
