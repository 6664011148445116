"""Asking the model from inside a node: replies are stored before they are used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.events import ReplyCutShort, Waiting
from kernelblaster.agent.outcome import PendingRequest
from kernelblaster.models.base import CutShort, PartialReply, Reply, ReplyPending, Request
from kernelblaster.models.streaming import partial_reply


class Unanswered(Exception):
    """The reply comes later (batch exchange). The rollout that needs it stops until the next start."""

    def __init__(self, request: PendingRequest) -> None:
        super().__init__(request.slot)
        self.request = request


async def ask(context: ProblemContext, request: Request) -> Reply:
    """The reply to `request`: the stored one when the slot was answered before, else the model's.

    A pending question is asked again word for word, also when this version would word it differently. Raises
    Unanswered, BudgetExceeded and ModelError.
    """
    if context.files.reply_path(request.slot).exists():
        stored = await asyncio.to_thread(context.files.find_reply, request)
        if stored is not None:
            return stored
    context.check_time()
    if context.files.question_path(request.slot).exists():
        request = await asyncio.to_thread(context.files.as_asked, request)
    try:
        reply = await context.model.complete(request)
    except ReplyPending as pending:
        await asyncio.to_thread(context.files.put_question, request)
        raise Unanswered(_wait_for(context, request, pending)) from pending
    except CutShort as error:
        _tell_cut(context, request, (*error.earlier, partial_reply(error)))
        raise
    _tell_cut(context, request, reply.cut_short)
    await asyncio.to_thread(context.files.put_reply, request, reply)
    return reply


async def frozen_request(context: ProblemContext, slot: str, build: Callable[[], Request]) -> Request:
    """The request of `slot` as it was first asked; a new one from `build` when it was not asked before.

    For requests that show the knowledge base, which other problems and the answer to this question change. A search
    that continues after a kill would otherwise ask something else and pay for a second reply.
    """
    known = await asyncio.to_thread(context.files.find_question, slot)
    if known is not None:
        return known
    request = await asyncio.to_thread(build)
    await asyncio.to_thread(context.files.put_question, request)
    return request


def _tell_cut(context: ProblemContext, request: Request, cut: Iterable[PartialReply]) -> None:
    for number, one in enumerate(cut):
        context.emit(
            ReplyCutShort(
                problem=str(context.problem.id),
                slot=request.slot,
                number=number,
                reason=one.reason,
                characters=one.characters,
                partial=one.text,
            )
        )


def _wait_for(context: ProblemContext, request: Request, pending: ReplyPending) -> PendingRequest:
    waiting = PendingRequest(slot=request.slot, request_id=pending.request_id, request_file=pending.request_file)
    context.emit(
        Waiting(
            problem=str(context.problem.id),
            slot=request.slot,
            request_id=waiting.request_id,
            request_file=waiting.request_file,
        )
    )
    return waiting
