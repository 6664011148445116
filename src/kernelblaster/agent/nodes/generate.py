"""The node that has the model write, or repair, a candidate."""

from __future__ import annotations

import asyncio

from langgraph.runtime import Runtime

from kernelblaster.agent.asking import Unanswered, ask
from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.events import Generated
from kernelblaster.agent.prompting import generate_request
from kernelblaster.agent.slots import attempt_slot
from kernelblaster.agent.state import Attempt, Failure, FailureKind, RolloutState, Spent, StateUpdate, StopReason
from kernelblaster.errors import BudgetExceeded
from kernelblaster.evaluation.results import Verdict
from kernelblaster.models.base import NoRecordedReply, Reply
from kernelblaster.models.replies import UnusableReply, parse_reply

SHORT_HASH = 12
"""Hexadecimal digits by which a rollout remembers what it evaluated."""


async def generate(state: RolloutState, runtime: Runtime[ProblemContext]) -> StateUpdate:
    """Ask for a candidate; after a failed attempt, ask for its repair.

    A reply without a source and a source seen before are failures that go to repair without an evaluation. A recording
    without the repair ends the step, one without the candidate ends the rollout.
    """
    context = runtime.context
    number = 0 if state.attempt is None else state.attempt.number + 1
    request = await asyncio.to_thread(generate_request, context, state, number)
    try:
        reply = await ask(context, request)
    except Unanswered as question:
        return {"pending": [question.request]}
    except BudgetExceeded:
        return {"stop": StopReason.BUDGET}
    except NoRecordedReply:
        if state.attempt is None:
            return {"stop": StopReason.RECORDING_EXHAUSTED}
        return {"attempt": state.attempt.model_copy(update={"beyond_repair": True})}
    attempt = await asyncio.to_thread(_read, context, state, number, reply)
    context.emit(
        Generated(
            problem=str(context.problem.id),
            slot=attempt_slot(context, state, number),
            candidate=attempt.candidate,
            stated_speedup=attempt.stated_speedup,
            reason=attempt.failure.reason if attempt.failure else "",
            prompt_tokens=reply.usage.prompt_tokens,
            completion_tokens=reply.usage.completion_tokens,
            dollars=reply.usage.dollars,
        )
    )
    spent: Spent = state.spent.plus(reply.usage)
    return {"attempt": attempt, "spent": spent}


def _read(context: ProblemContext, state: RolloutState, number: int, reply: Reply) -> Attempt:
    try:
        parsed = parse_reply(reply.text)
    except UnusableReply as unusable:
        return Attempt(number=number, failure=Failure(kind=FailureKind.UNUSABLE_REPLY, reason=str(unusable)))
    sha256 = context.files.put_candidate(parsed.source)
    known = _known_verdict(state, sha256)
    return Attempt(
        number=number,
        candidate=sha256,
        stated_speedup=parsed.expected_speedup,
        verdict=known,
        failure=None if known is None else _duplicate(known),
    )


def _known_verdict(state: RolloutState, sha256: str) -> str | None:
    """Verdict of a source that this rollout has evaluated or stands on; None for a new one."""
    if sha256 == state.incumbent.sha256:
        return Verdict.CORRECT
    return state.seen.get(sha256[:SHORT_HASH])


def _duplicate(verdict: str) -> Failure:
    return Failure(
        kind=FailureKind.DUPLICATE,
        reason=f"this source is identical to one that was already evaluated ({verdict}); write a different kernel",
    )
