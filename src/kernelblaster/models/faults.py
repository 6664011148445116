"""What went wrong with one attempt to reach an endpoint, in this package's terms, and whether to try again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import StrEnum
from importlib import import_module

import openai

from kernelblaster.errors import ModelError
from kernelblaster.models.base import BadKey, BadReply, CutShort, RateLimited, RequestRejected, Unreachable

_TRANSPORT = import_module(openai.DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0])
TRANSPORT_ERRORS: type[Exception] = _TRANSPORT.HTTPError
"""What the SDK's HTTP library raises while a response is read; versions of the SDK use different libraries."""
_SHOWN = 300
"""Characters of a server's explanation that a person is shown."""


class Again(StrEnum):
    """Whether an attempt that failed is worth repeating."""

    NEVER = "never"
    ONCE = "once"
    BOUNDED = "bounded"


@dataclass(frozen=True)
class Fault:
    """A failed attempt.

    Attributes:
        error: what to raise when no attempt is left.
        again: whether to try again.
        wait_s: seconds that the server asks to wait; None when it does not say.
        maybe_charged: the provider may charge for the attempt although nothing came of it.
    """

    error: ModelError
    again: Again
    wait_s: float | None = None
    maybe_charged: bool = False


def timeout_fault(endpoint: str, limit_s: float) -> Fault:
    """No complete answer in time. Retried once: a second timeout of that length says enough."""
    return Fault(
        Unreachable(
            f"{endpoint} gave no complete answer in {limit_s:g} s",
            hint="raise --model-timeout, lower --max-completion-tokens, or use a faster model",
        ),
        Again.ONCE,
        maybe_charged=True,
    )


def cut_short_fault(error: CutShort) -> Fault:
    """A reply that broke off while it was streamed. Retried once, as a timeout is: the provider may charge for each."""
    return Fault(error, Again.ONCE, maybe_charged=True)


def bad_reply_fault(error: BadReply) -> Fault:
    """An answer that is no completion."""
    return Fault(error, Again.ONCE, maybe_charged=True)


def sdk_fault(error: openai.OpenAIError, endpoint: str, scrub: Callable[[str], str]) -> Fault:
    """Classify what the SDK raised; `scrub` takes secrets out of a server's message."""
    if isinstance(error, openai.APIStatusError):
        said = scrub(error.message)[:_SHOWN]
        return _status_fault(error, endpoint, said)
    return connection_fault(scrub(str(error.__cause__ or error)), endpoint)


def connection_fault(reason: str, endpoint: str) -> Fault:
    """No connection, or one that broke before anything of a reply had come."""
    told = f"{endpoint} cannot be reached: {reason[:_SHOWN]}"
    return Fault(Unreachable(told, hint="check the base URL, the network and the server"), Again.BOUNDED)


def _status_fault(error: openai.APIStatusError, endpoint: str, said: str) -> Fault:
    status = error.status_code
    if status in (401, 403):
        key = BadKey(f"{endpoint} refuses the API key ({status}): {said}", hint="set OPENAI_API_KEY to a valid key")
        return Fault(key, Again.NEVER)
    if status == 429:
        return _rate_fault(error, endpoint, said)
    if status >= 500 or status in (408, 409):
        down = Unreachable(f"{endpoint} fails ({status}): {said}", hint="try again later, or use another endpoint")
        return Fault(down, Again.BOUNDED, wait_s=retry_after(error.response.headers))
    rejected = RequestRejected(
        f"{endpoint} rejects the request ({status}): {said}",
        hint="check --model, the base URL, and --max-completion-tokens if you gave it",
    )
    return Fault(rejected, Again.NEVER)


def _rate_fault(error: openai.APIStatusError, endpoint: str, said: str) -> Fault:
    if error.code == "insufficient_quota":
        spent = RateLimited(
            f"the account at {endpoint} has no quota left: {said}", hint="add credit, or use another key"
        )
        return Fault(spent, Again.NEVER)
    limited = RateLimited(
        f"{endpoint} limits the rate: {said}", hint="lower --model-concurrency, or wait and start again"
    )
    return Fault(limited, Again.BOUNDED, wait_s=retry_after(error.response.headers))


def retry_after(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Seconds to wait by `Retry-After` (seconds or a date) or `retry-after-ms`; None when neither can be read."""
    milliseconds, plain = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if milliseconds is not None:
            return max(0.0, float(milliseconds) / 1000)
        return None if plain is None else max(0.0, float(plain))
    except ValueError:
        return _until(plain, now()) if plain is not None else None


def _until(date: str, now: float) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - now)
    except (ValueError, OverflowError):
        return None
