"""Chat completions that arrive piece by piece (server-sent events), put together as they come.

A reply is cut short when its time is over, when nothing comes for too long after it has begun, and when the connection
ends before the reply does. What had arrived by then is kept with the error. Before the first piece of text only the
whole time counts: reasoning models say nothing while they think.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from kernelblaster.models.base import BadReply, CutShort, PartialReply

PARTIAL_CHARACTERS = 4_000
"""Of a reply that was cut short, its end: kept for people."""
_FIELD = "data:"
_DONE = "[DONE]"


class _Delta(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _StreamedChoice(BaseModel):
    index: int = 0
    delta: _Delta = Field(default_factory=_Delta)
    finish_reason: str | None = None


class _Chunk(BaseModel):
    choices: list[_StreamedChoice] = []
    model: str | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


class StreamedReply:
    """The first choice of a streamed completion, as far as it has come."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._content: list[str] = []
        self._refusal: list[str] = []
        self._size = 0
        self._model: str | None = None
        self._usage: dict[str, Any] | None = None
        self._finish_reason: str | None = None
        self.over = False
        """Whether the stream has said that nothing follows."""

    @property
    def begun(self) -> bool:
        """Whether any text has come."""
        return bool(self._content or self._refusal)

    @property
    def whole(self) -> bool:
        """Whether the reply came to its end."""
        return self.over or self._finish_reason is not None

    @property
    def text(self) -> str:
        """What has come."""
        return "".join(self._content or self._refusal)

    def feed(self, line: str) -> None:
        """Take one line of the stream; comments and other fields are passed over. Raises BadReply."""
        if not line.startswith(_FIELD):
            return
        data = line.removeprefix(_FIELD).strip()
        if data == _DONE:
            self.over = True
            return
        self._size += len(data)
        if self._size > self._largest:
            raise BadReply(f"the reply has more than {self._largest} characters", hint="set --max-completion-tokens")
        self._take(_chunk(data))

    def completion(self) -> dict[str, Any]:
        """The reply as the body of a completion that was not streamed."""
        message = {"content": "".join(self._content) or None, "refusal": "".join(self._refusal) or None}
        if not self.begun:
            message["content"] = "" if self._finish_reason else None
        choice = {"message": message, "finish_reason": self._finish_reason}
        return {"choices": [choice], "model": self._model, "usage": self._usage}

    def _take(self, chunk: _Chunk) -> None:
        if chunk.error is not None:
            raise BadReply(f"the endpoint broke off with an error: {chunk.error}"[:300], hint="try again")
        self._model = chunk.model or self._model
        self._usage = chunk.usage or self._usage
        for choice in chunk.choices:
            if choice.index == 0:
                self._content += [choice.delta.content] if choice.delta.content else []
                self._refusal += [choice.delta.refusal] if choice.delta.refusal else []
                self._finish_reason = choice.finish_reason or self._finish_reason


def _chunk(data: str) -> _Chunk:
    try:
        return _Chunk.model_validate(json.loads(data))
    except (ValidationError, ValueError, RecursionError):
        raise BadReply("a piece of the model's reply is no chat completion", hint="try again") from None


async def read_stream(lines: AsyncIterator[str], reply: StreamedReply, idle_s: float, endpoint: str) -> None:
    """Read a reply to its end. Raises CutShort when nothing comes for `idle_s`, or the stream ends early; BadReply."""
    while not reply.over:
        try:
            async with asyncio.timeout(idle_s if reply.begun else None):
                line = await anext(lines, None)
        except TimeoutError:
            raise cut_short(f"{endpoint} sent nothing for {idle_s:g} s within a reply", reply) from None
        if line is None:
            break
        reply.feed(line)
    if not reply.whole:
        raise cut_short(f"{endpoint} ended the connection within a reply", reply)


def cut_short(reason: str, reply: StreamedReply) -> CutShort:
    """The error of a reply that did not come to its end."""
    return CutShort(
        reason,
        hint="raise --model-timeout or model.idle_timeout_s, lower --max-completion-tokens, or use another endpoint",
        partial=reply.text,
    )


def partial_reply(error: CutShort) -> PartialReply:
    """What is kept of a reply that was cut short."""
    text = error.partial
    return PartialReply(reason=error.message, characters=len(text), text=text[-PARTIAL_CHARACTERS:])
