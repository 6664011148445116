"""The `ChatModel` seam."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict

from kernelblaster.errors import ModelError


class Message(BaseModel):
    """One chat message."""

    model_config = ConfigDict(frozen=True)

    role: Literal["system", "user", "assistant"]
    content: str


class Purpose(StrEnum):
    """Why the model is asked; the ledger is broken down by it."""

    GENERATE = "generate"
    REPAIR = "repair"
    CLASSIFY = "classify"
    REFLECT = "reflect"
    VERIFY = "verify"
    LESSON = "lesson"


class Request(BaseModel):
    """One question to the model.

    `slot` names the place in the search that asks, stable over resumes, e.g.
    `level1/023/r2/rollout-1/step-3/attempt-0`; together with the messages it identifies the request.
    `tags` are facts that a recording may match on: problem, precision, parent_sha256, technique, state.
    """

    model_config = ConfigDict(frozen=True)

    slot: str
    purpose: Purpose
    messages: tuple[Message, ...]
    tags: dict[str, str] = {}


class Usage(BaseModel):
    """Tokens and dollars of one call; `estimated` when the provider reported none."""

    model_config = ConfigDict(frozen=True)

    prompt_tokens: int
    completion_tokens: int
    cached_prompt_tokens: int = 0
    reasoning_tokens: int = 0
    dollars: float | None
    """None when the price of the model is unknown; never 0 by default."""
    estimated: bool = False


def sum_dollars(one: float | None, other: float | None) -> float | None:
    """Dollars together; None when either price is unknown."""
    return None if one is None or other is None else one + other


class PartialReply(BaseModel):
    """A reply that was cut short, and asked for again."""

    model_config = ConfigDict(frozen=True)

    reason: str
    characters: int
    """That had arrived."""
    text: str
    """The end of them."""


class Reply(BaseModel):
    """What the model said."""

    model_config = ConfigDict(frozen=True)

    text: str
    usage: Usage
    model: str
    """The name the provider reports."""
    seconds: float = 0.0
    finish_reason: str | None = None
    """As the provider reports it: `stop`, `length` (cut off), `content_filter`, ...; None when it reports none."""
    cut_short: tuple[PartialReply, ...] = ()
    """Attempts at it that ended before their end."""


class ReplyPending(Exception):
    """The model has written the request down and cannot answer yet (batch exchange). Not an error: the run
    names `request_file`, and exits with code 75 once nothing else can go on."""

    def __init__(self, request_id: str, request_file: str) -> None:
        super().__init__(f"reply {request_id} is pending in {request_file}")
        self.request_id = request_id
        self.request_file = request_file


class BadKey(ModelError):
    """401 / 403: no retry, the run stops at once."""


class RateLimited(ModelError):
    """429 after the bounded back-off."""


class Unreachable(ModelError):
    """Connection refused, DNS, timeouts, 5xx after the bounded retries."""


class CutShort(Unreachable):
    """A streamed reply that did not come to its end; `partial` is what had arrived. Worth asking again."""

    def __init__(self, message: str, *, hint: str = "", partial: str = "") -> None:
        super().__init__(message, hint=hint)
        self.partial = partial
        self.earlier: tuple[PartialReply, ...] = ()
        """Of attempts before this one, cut short as well."""


class BadReply(ModelError):
    """The endpoint answered something that is not a chat completion (truncated JSON, no choices)."""


class RequestRejected(ModelError):
    """400 / 404 / 413 / 422: no such model, prompt too long, a parameter that the endpoint does not take."""


class NoRecordedReply(ModelError):
    """A recording has no answer for this request."""


class ChatModel(Protocol):
    """Anything that answers messages."""

    @property
    def name(self) -> str:
        """Model name as configured."""
        ...

    async def complete(self, request: Request) -> Reply:
        """Answer. Raises ModelError subclasses, BudgetExceeded, or ReplyPending."""
        ...

    def answerable(self, tags: dict[str, str]) -> frozenset[str] | None:
        """Techniques this model can answer for the given tags, or None for "anything" (a recording can only
        answer what it was asked; the search then chooses among those)."""
        ...
