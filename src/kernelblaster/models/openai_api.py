"""Any endpoint that speaks OpenAI's chat completions: OpenAI, vLLM, Ollama, gateways.

Replies are streamed where the endpoint does that (`streaming`). The SDK is used for transport alone. Its own retries
are off: each attempt here is admitted by the ledger, bounded in time as a whole (a server that trickles bytes does not
escape), and counted. The key leaves this module only in the Authorization header; what a server says is scrubbed of it
before it is shown.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections import Counter
from dataclasses import dataclass

import openai

from kernelblaster.config import ModelConfig
from kernelblaster.models.base import BadKey, BadReply, CutShort, PartialReply, Reply, Request, Usage
from kernelblaster.models.completion import (
    Completion,
    completion_of,
    estimate_usage,
    read_completion,
    request_body,
)
from kernelblaster.models.endpoint import OPENAI_URL, endpoint_of
from kernelblaster.models.faults import (
    TRANSPORT_ERRORS,
    Again,
    Fault,
    bad_reply_fault,
    connection_fault,
    cut_short_fault,
    sdk_fault,
    timeout_fault,
)
from kernelblaster.models.ledger import CostLedger
from kernelblaster.models.prices import Price
from kernelblaster.models.reservations import reserved
from kernelblaster.models.streaming import StreamedReply, cut_short, partial_reply, read_stream

LARGEST_REPLY = 32 * 1024 * 1024
"""Bytes of a response body; no completion is near it."""
SILENCE_S = 10.0
"""How long a fault that was told of one request is not told of others that fail alike."""
_NO_KEY = "none"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Backoff:
    """Waits between attempts: doubling, with jitter so that concurrent calls spread out.

    Attributes:
        first_s: the first wait.
        longest_s: no wait is longer; a server that asks for more ends the attempts.
    """

    first_s: float = 1.0
    longest_s: float = 120.0

    def wait_s(self, number: int, asked_s: float | None) -> float:
        """Seconds before retry `number` (from 0)."""
        own = min(self.longest_s, self.first_s * 2.0**number) * random.uniform(0.5, 1.0)
        return own if asked_s is None else max(own, asked_s)


class _AttemptFailed(Exception):
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.error.message)
        self.fault = fault


class OpenAiModel:
    """A model behind an HTTP endpoint. Raises BadKey when OpenAI itself is asked without a key."""

    def __init__(
        self, config: ModelConfig, ledger: CostLedger, price: Price | None, backoff: Backoff | None = None
    ) -> None:
        if config.api_key is None and config.base_url is None:
            raise BadKey("no API key", hint="set OPENAI_API_KEY, or --base-url for a local server")
        self._config = config
        self._ledger = ledger
        self._price = price
        self._backoff = backoff or Backoff()
        self._url = config.base_url or OPENAI_URL
        self._limit_name = "max_completion_tokens"
        self._stream = config.stream
        self._told: dict[str, float] = {}
        self._connection: tuple[asyncio.AbstractEventLoop, openai.AsyncOpenAI, asyncio.Semaphore] | None = None

    def __repr__(self) -> str:
        return f"OpenAiModel({self.name!r} at {self.endpoint!r})"

    @property
    def name(self) -> str:
        """Model name as configured."""
        return self._config.name

    @property
    def endpoint(self) -> str:
        """Host and path of the base URL, without credentials or query."""
        return endpoint_of(self._config)

    def answerable(self, tags: dict[str, str]) -> None:
        """Anything."""
        return None

    async def complete(self, request: Request) -> Reply:
        """Ask, with bounded retries, unless the reply has arrived before. Raises ModelError and CapReached."""
        arrived = self._ledger.arrived(request)
        if arrived is not None:
            return arrived
        client, slots = self._connected()
        tried: Counter[Again] = Counter()
        cut: tuple[PartialReply, ...] = ()
        async with slots:
            while True:
                try:
                    return await self._attempt(client, request, cut)
                except _AttemptFailed as failed:
                    fault = failed.fault
                tried[fault.again] += 1
                if isinstance(fault.error, CutShort):
                    fault.error.earlier, cut = cut, (*cut, partial_reply(fault.error))
                await self._wait_or_raise(fault, tried)

    def _connected(self) -> tuple[openai.AsyncOpenAI, asyncio.Semaphore]:
        """Client and slots of the running loop: neither may be shared between event loops."""
        loop = asyncio.get_running_loop()
        if self._connection is None or self._connection[0] is not loop:
            client = openai.AsyncOpenAI(
                api_key=key_of(self._config), base_url=self._url, max_retries=0, timeout=self._config.timeout_s
            )
            self._connection = (loop, client, asyncio.Semaphore(self._config.concurrency))
        return self._connection[1], self._connection[2]

    async def _wait_or_raise(self, fault: Fault, tried: Counter[Again]) -> None:
        retries = tried.total() - 1
        once_more = fault.again is Again.BOUNDED or (fault.again is Again.ONCE and tried[Again.ONCE] == 1)
        too_long = fault.wait_s is not None and fault.wait_s > self._backoff.longest_s
        if not once_more or too_long or retries >= self._config.max_retries:
            raise fault.error
        wait = self._backoff.wait_s(retries, fault.wait_s)
        if self._is_news(f"{fault.error.message} {retries}"):
            _log.info("%s; attempt %d in %.1f s", fault.error.message, retries + 2, wait)
        await asyncio.sleep(wait)

    def _is_news(self, told: str) -> bool:
        """Whether a person has not read this lately: all requests in flight fail together where a server does."""
        now = time.monotonic()
        earlier, self._told[told] = self._told.get(told, -math.inf), now
        return now - earlier > SILENCE_S

    async def _attempt(self, client: openai.AsyncOpenAI, request: Request, cut: tuple[PartialReply, ...] = ()) -> Reply:
        async with reserved(self._ledger, request, self._price, self._config.max_completion_tokens) as least:
            began = time.monotonic()
            try:
                completion = await self._post(client, request)
                return self._read(request, completion, began, cut)
            except _AttemptFailed as failed:
                error = failed.fault.error
                if failed.fault.maybe_charged:
                    came = estimate_usage(request, error.partial, self._price) if isinstance(error, CutShort) else least
                    self._record_useless(request, came, began, type(error).__name__)
                raise
            except asyncio.CancelledError:
                # Interrupted, or another call stopped the run: the provider has the question and goes on answering.
                self._record_useless(request, least, began, "Cancelled")
                raise

    def _record_useless(self, request: Request, usage: Usage, began: float, outcome: str) -> None:
        """Count a call that nothing came of and that may be charged."""
        seconds = time.monotonic() - began
        self._ledger.record(request, usage, model=self.name, seconds=seconds, outcome=outcome)

    async def _post(self, client: openai.AsyncOpenAI, request: Request) -> Completion:
        """One request, bounded as a whole; without a stream, or a parameter, that the endpoint does not take."""
        left = self._ledger.seconds_left()
        limit = self._config.timeout_s if left is None else min(self._config.timeout_s, left)
        streamed = StreamedReply(LARGEST_REPLY)
        try:
            async with asyncio.timeout(limit):
                return await self._exchange(client, request, streamed)
        except (TimeoutError, openai.APITimeoutError):
            if streamed.begun:
                reason = f"{self.endpoint} gave no complete answer in {limit:g} s"
                raise _AttemptFailed(cut_short_fault(cut_short(reason, streamed))) from None
            raise _AttemptFailed(timeout_fault(self.endpoint, limit)) from None
        except TRANSPORT_ERRORS as error:
            if streamed.begun:
                reason = f"{self.endpoint} ended the connection within a reply: {type(error).__name__}"
                raise _AttemptFailed(cut_short_fault(cut_short(reason, streamed))) from None
            raise _AttemptFailed(connection_fault(self._scrub(str(error)), self.endpoint)) from None
        except CutShort as error:
            raise _AttemptFailed(cut_short_fault(error)) from None
        except BadReply as error:
            raise _AttemptFailed(bad_reply_fault(error)) from None
        except openai.OpenAIError as error:
            if isinstance(error, openai.APIStatusError) and self._does_without(error):
                return await self._post(client, request)
            raise _AttemptFailed(sdk_fault(error, self.endpoint, self._scrub)) from None

    async def _exchange(self, client: openai.AsyncOpenAI, request: Request, streamed: StreamedReply) -> Completion:
        """Ask and read the answer, streamed if it comes so. Raises CutShort, BadReply and what SDK and transport do."""
        body = request_body(self._config, request, self._limit_name)
        if self._stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        async with client.chat.completions.with_streaming_response.create(**body) as response:
            content_type = response.headers.get("content-type", "")
            if "event-stream" in content_type:
                lines = aiter(response.iter_lines())
                await read_stream(lines, streamed, self._config.idle_timeout_s, self.endpoint)
                return completion_of(streamed.completion())
            content = await response.read()
        if len(content) > LARGEST_REPLY:
            raise BadReply(f"the reply has {len(content)} bytes", hint="set --max-completion-tokens")
        return read_completion(content, content_type)

    def _does_without(self, refusal: openai.APIStatusError) -> bool:
        """Whether the request can be asked again without what the endpoint has just refused; never twice the same."""
        if refusal.status_code not in (400, 422):
            return False
        limited = self._config.max_completion_tokens is not None and self._limit_name != "max_tokens"
        if limited and self._limit_name in refusal.message:
            self._limit_name = "max_tokens"
            return True
        if self._stream and "stream" in refusal.message.lower():
            self._stream = False
            return True
        return False

    def _read(self, request: Request, completion: Completion, began: float, cut: tuple[PartialReply, ...]) -> Reply:
        try:
            text = completion.answer()
        except BadReply as error:
            raise _AttemptFailed(bad_reply_fault(error)) from None
        usage = completion.reported_usage(self._price) or estimate_usage(request, text, self._price)
        reply = Reply(
            text=text,
            usage=usage,
            model=completion.model or self.name,
            seconds=time.monotonic() - began,
            finish_reason=completion.finish_reason,
            cut_short=cut,
        )
        self._ledger.record(request, usage, model=reply.model, seconds=reply.seconds, reply=reply)
        if completion.finish_reason in ("length", "content_filter"):
            _log.warning(
                "%s: the reply ended by %s after %d tokens",
                request.slot,
                completion.finish_reason,
                usage.completion_tokens,
            )
        return reply

    def _scrub(self, text: str) -> str:
        return scrubbed(self._config, text)


def key_of(config: ModelConfig) -> str:
    """The API key, or a placeholder for servers that want none."""
    key = config.api_key.get_secret_value() if config.api_key else ""
    return key or _NO_KEY


def scrubbed(config: ModelConfig, text: str) -> str:
    """A server's message without the key."""
    key = key_of(config)
    return text if key == _NO_KEY else text.replace(key, "[key]")
