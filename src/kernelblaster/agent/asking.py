"""Asking the model from inside a node: replies are stored before they are used, pending ones interrupt the graph."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from langgraph.types import interrupt

from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.events import Waiting
from kernelblaster.agent.state import PendingRequest
from kernelblaster.models.base import Reply, ReplyPending, Request


async def ask(context: ProblemContext, request: Request) -> Reply:
    """The reply to `request`: the stored one when the slot was answered before, else the model's.

    A pending reply interrupts this node; the others go on, and the next start runs this node again.
    Raises BudgetExceeded and ModelError.
    """
    stored = await asyncio.to_thread(context.files.find_reply, request)
    if stored is not None:
        return stored
    context.check_time()
    try:
        reply = await context.model.complete(request)
    except ReplyPending as pending:
        _wait_for(context, request, pending)
        raise
    await asyncio.to_thread(context.files.put_reply, request, reply)
    return reply


async def frozen_request(context: ProblemContext, slot: str, build: Callable[[], Request]) -> Request:
    """The request of `slot` in the words in which it was asked first; those of `build` when it was not.

    For requests that show the knowledge base. Other problems, and this very question's answer, change that before the
    node that asks is done: after a kill the question would be another one, and its reply be paid for again.
    """
    known = await asyncio.to_thread(context.files.find_question, slot)
    if known is not None:
        return known
    request = await asyncio.to_thread(build)
    await asyncio.to_thread(context.files.put_question, request)
    return request


def _wait_for(context: ProblemContext, request: Request, pending: ReplyPending) -> None:
    waiting = PendingRequest(slot=request.slot, request_id=pending.request_id, request_file=pending.request_file)
    context.emit(
        Waiting(
            problem=str(context.problem.id),
            slot=request.slot,
            request_id=waiting.request_id,
            request_file=waiting.request_file,
        )
    )
    interrupt(waiting.model_dump())
