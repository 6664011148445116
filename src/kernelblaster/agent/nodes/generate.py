"""The node that has the model write, or repair, a candidate."""

from __future__ import annotations

import asyncio

from langgraph.runtime import Runtime

from kernelblaster.agent.asking import Unanswered, ask
from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.events import Generated
from kernelblaster.agent.outcome import StopReason
from kernelblaster.agent.prompting import generate_request, tried_by_others
from kernelblaster.agent.slots import attempt_slot
from kernelblaster.agent.state import Attempt, Failure, FailureKind, RolloutState, Spent, StateUpdate
from kernelblaster.config import SearchPart
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.errors import BudgetExceeded
from kernelblaster.evaluation.results import Verdict
from kernelblaster.models.base import NoRecordedReply, Reply, Request
from kernelblaster.models.edits import InapplicableEdits, parse_candidate
from kernelblaster.models.replies import CandidateReply, UnusableReply

SHORT_HASH = 12
"""Hexadecimal digits by which a rollout remembers what it evaluated."""


async def generate(state: RolloutState, runtime: Runtime[ProblemContext]) -> StateUpdate:
    """Ask for a candidate; after a failed attempt, ask for its repair.

    A reply without a source and a source seen before are failures that go to repair without an evaluation, edits that
    do not apply once in a row. A recording without the repair ends the step, one without the candidate ends the
    rollout. A model that repeats itself is not asked again.
    """
    context = runtime.context
    if context.notes.repeating:
        return {"stop": StopReason.REPEATING}
    number = 0 if state.attempt is None else state.attempt.number + 1
    request = await asyncio.to_thread(_request, context, state, number)
    answered_before = context.files.reply_path(request.slot).exists()
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
    attempt, parsed, new = await asyncio.to_thread(_read, context, state, number, reply)
    if not answered_before and context.recording is None:
        context.notes.replied(new=new)
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
            edits=parsed.edits if parsed else 0,
            written_share=parsed.written / len(parsed.source) if parsed else None,
        )
    )
    spent: Spent = state.spent.plus(reply.usage)
    return {"attempt": attempt, "spent": spent}


def _request(context: ProblemContext, state: RolloutState, number: int) -> Request:
    """The question, in the words in which it was first asked: a start after a kill knows nothing of other rollouts."""
    request = generate_request(context, state, number)
    if context.files.question_path(request.slot).exists():
        return context.files.as_asked(request)
    if tried_by_others(context, state):
        context.files.put_question(request)
    return request


def _read(
    context: ProblemContext, state: RolloutState, number: int, reply: Reply
) -> tuple[Attempt, CandidateReply | None, bool]:
    """The attempt that a reply makes, what it held, and whether its source is new to the search."""
    base = context.files.candidate(state.edited) if context.config.has(SearchPart.EDITS) else None
    try:
        parsed = parse_candidate(reply.text, base)
    except InapplicableEdits as misfit:
        return _inapplicable(state, misfit), None, False
    except UnusableReply as unusable:
        failure = Failure(kind=FailureKind.UNUSABLE_REPLY, reason=str(unusable))
        return _without_file(state, failure), None, False
    new = not context.files.candidate_path(source_digest(parsed.source)).exists()
    sha256 = context.files.put_candidate(parsed.source)
    known = _known_verdict(state, sha256)
    attempt = Attempt(
        number=number,
        candidate=sha256,
        stated_speedup=parsed.expected_speedup,
        verdict=known,
        failure=None if known is None else _duplicate(known),
    )
    return attempt, parsed, new


def _without_file(state: RolloutState, failure: Failure) -> Attempt:
    """An attempt that holds no file. One that repeats the parent was no file of its own, either."""
    if state.attempt is None:
        return Attempt(number=0, failure=failure)
    attempt = state.attempt.without_file(failure)
    parent = attempt.base == state.incumbent.sha256
    return attempt.model_copy(update={"base": None, "base_failure": None}) if parent else attempt


def _inapplicable(state: RolloutState, misfit: InapplicableEdits) -> Attempt:
    before = state.attempt.failure if state.attempt else None
    attempt = _without_file(state, Failure(kind=FailureKind.INAPPLICABLE_EDITS, reason=misfit.reason))
    twice = before is not None and before.kind == FailureKind.INAPPLICABLE_EDITS
    return attempt.model_copy(update={"beyond_repair": twice})


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
