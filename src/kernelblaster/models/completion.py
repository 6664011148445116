"""Chat completions as they come over the wire or out of a batch file: read leniently, trusted with nothing.

Servers differ in what they leave out, so only what is used is read. Something without an answer raises BadReply.
"""

from __future__ import annotations

import json
import math
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from kernelblaster.config import ModelConfig
from kernelblaster.models.base import BadReply, Request, Usage
from kernelblaster.models.prices import Price

CHARACTERS_PER_TOKEN = 4
"""Of English and code, roughly; used only where a provider reports no usage."""
_MESSAGE_OVERHEAD = 4
_BAD_REPLY_HINT = "check that the base URL is that of a chat completions API (it usually ends in /v1)"
_CUT_OFF = ("length", "content_filter")


class _PromptDetails(BaseModel):
    cached_tokens: int | None = Field(None, ge=0)


class _CompletionDetails(BaseModel):
    reasoning_tokens: int | None = Field(None, ge=0)


class _WireUsage(BaseModel):
    prompt_tokens: int | None = Field(None, ge=0)
    completion_tokens: int | None = Field(None, ge=0)
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None


class _WireMessage(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _WireMessage
    finish_reason: str | None = None


class Completion(BaseModel):
    """The body of a chat completion, as far as it is used."""

    choices: list[_Choice] = []
    model: str | None = None
    usage: _WireUsage | None = None

    def answer(self) -> str:
        """The text of the first choice, or its refusal; empty only for a reply that was cut off or filtered.

        Text that is not valid Unicode has its stray surrogates replaced. Raises BadReply.
        """
        if not self.choices:
            raise BadReply("the model's reply holds no choices", hint=_BAD_REPLY_HINT)
        message = self.choices[0].message
        text = message.content or message.refusal
        if text is None and message.content is None and self.finish_reason not in _CUT_OFF:
            raise BadReply("the model's reply holds no content", hint="try again, or use another model")
        return (text or "").encode("utf-8", "replace").decode("utf-8")

    @property
    def finish_reason(self) -> str | None:
        """Why the first choice ended."""
        return self.choices[0].finish_reason if self.choices else None

    def reported_usage(self, price: Price | None) -> Usage | None:
        """What the provider counted; None when it did not."""
        if self.usage is None or self.usage.prompt_tokens is None or self.usage.completion_tokens is None:
            return None
        prompt, completion = self.usage.prompt_tokens_details, self.usage.completion_tokens_details
        cached = (prompt.cached_tokens if prompt else None) or 0
        tokens = self.usage.prompt_tokens, self.usage.completion_tokens
        return Usage(
            prompt_tokens=tokens[0],
            completion_tokens=tokens[1],
            cached_prompt_tokens=cached,
            reasoning_tokens=(completion.reasoning_tokens if completion else None) or 0,
            dollars=price.dollars(*tokens, cached) if price else None,
        )


def read_completion(body: bytes, content_type: str = "application/json") -> Completion:
    """Read a response body. Raises BadReply."""
    try:
        return completion_of(json.loads(body))
    except (ValueError, RecursionError):
        kind = content_type.partition(";")[0].strip() or "no content type"
        if "json" in kind:
            raise BadReply(f"the model's reply is broken JSON ({len(body)} bytes)", hint=_BAD_REPLY_HINT) from None
        raise BadReply(f"the endpoint answered {kind} instead of JSON", hint=_BAD_REPLY_HINT) from None


def completion_of(body: Any) -> Completion:
    """Check a decoded body. Raises BadReply."""
    try:
        return Completion.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the body"
        raise BadReply(f"the reply is not a chat completion: {where}: {first['msg']}", hint=_BAD_REPLY_HINT) from None


def estimate_usage(request: Request, answer: str, price: Price | None) -> Usage:
    """Tokens from lengths, for calls whose provider reports none; marked as estimated."""
    characters = sum(len(message.content) for message in request.messages)
    prompt = math.ceil(characters / CHARACTERS_PER_TOKEN) + _MESSAGE_OVERHEAD * len(request.messages)
    completion = math.ceil(len(answer) / CHARACTERS_PER_TOKEN)
    dollars = price.dollars(prompt, completion) if price else None
    return Usage(prompt_tokens=prompt, completion_tokens=completion, dollars=dollars, estimated=True)


def request_body(config: ModelConfig, request: Request, limit_name: str = "max_completion_tokens") -> dict[str, Any]:
    """The JSON body that asks; what is not configured is left to the server."""
    body: dict[str, Any] = {
        "model": config.name,
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
    }
    if config.max_completion_tokens is not None:
        body[limit_name] = config.max_completion_tokens
    for name in ("temperature", "top_p", "reasoning_effort"):
        value = getattr(config, name)
        if value is not None:
            body[name] = value
    return body
