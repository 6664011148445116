"""The stage before the search: a problem without a starting kernel gets its first correct one from the model.

Each reply is judged like any candidate; what fails goes back with the failure. Replies and evaluations lie in files by
their places, so that a stage that is started again asks and judges nothing twice. What comes of it is the start that
faster kernels are measured against.
"""

from __future__ import annotations

import asyncio

from langgraph.runtime import Runtime

from kernelblaster.agent.asking import Unanswered, ask
from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.evaluating import judge
from kernelblaster.agent.events import StartWritten
from kernelblaster.agent.nodes.evaluate import FINAL_VERDICTS, failure_of
from kernelblaster.agent.outcome import OutcomeStatus
from kernelblaster.agent.prompting import first_kernel_request
from kernelblaster.agent.slots import first_kernel_slot
from kernelblaster.agent.state import Attempt, Failure, FailureKind, ProblemState, StateUpdate
from kernelblaster.errors import BudgetExceeded
from kernelblaster.models.base import NoRecordedReply, Reply
from kernelblaster.models.replies import UnusableReply, parse_reply


async def write_start(state: ProblemState, runtime: Runtime[ProblemContext]) -> StateUpdate:
    """Have the first kernel written, where the problem has none."""
    context = runtime.context
    if context.problem.has_start:
        return {}
    failed: Attempt | None = None
    for number in range(context.config.first_attempts):
        request = await asyncio.to_thread(first_kernel_request, context, number, failed)
        try:
            reply = await ask(context, request)
        except Unanswered as question:
            return {"pending": [question.request]}
        except BudgetExceeded as error:
            return {"failure": f"no first kernel: {error.message}", "failed_as": OutcomeStatus.BUDGET}
        except NoRecordedReply as error:
            return {"failure": f"no first kernel: {error.message}", "failed_as": OutcomeStatus.UNANSWERED}
        attempt = await _judged(context, failed, reply)
        context.emit(_event(context, attempt, reply))
        if attempt.failure is None:
            return {"written": attempt.candidate}
        failed = attempt
        if attempt.failure.kind in FINAL_VERDICTS:
            break
    if failed is None or failed.failure is None:
        raise ValueError("at least one attempt is allowed")
    told = f"{failed.failure.kind}: {failed.failure.reason}"
    return {"failure": f"no correct first kernel in {failed.number + 1} replies; the last: {told}"}


async def _judged(context: ProblemContext, before: Attempt | None, reply: Reply) -> Attempt:
    """The attempt that a reply makes; `before`: the one that it mends."""
    number = before.number + 1 if before else 0
    try:
        source = parse_reply(reply.text).source
    except UnusableReply as unusable:
        failure = Failure(kind=FailureKind.UNUSABLE_REPLY, reason=str(unusable))
        return before.without_file(failure) if before else Attempt(number=0, failure=failure)
    sha256 = await asyncio.to_thread(context.files.put_candidate, source)
    judged = await judge(context, sha256, baseline=None)
    return Attempt(
        number=number,
        candidate=sha256,
        evaluation=judged.key,
        verdict=str(judged.evaluation.verdict),
        failure=failure_of(judged.evaluation),
    )


def _event(context: ProblemContext, attempt: Attempt, reply: Reply) -> StartWritten:
    return StartWritten(
        problem=str(context.problem.id),
        slot=first_kernel_slot(context, attempt.number),
        candidate=attempt.candidate,
        verdict=attempt.verdict or FailureKind.UNUSABLE_REPLY,
        reason=attempt.failure.reason if attempt.failure else "",
        prompt_tokens=reply.usage.prompt_tokens,
        completion_tokens=reply.usage.completion_tokens,
        dollars=reply.usage.dollars,
    )
