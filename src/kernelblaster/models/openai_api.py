"""Any endpoint that speaks OpenAI's chat completions: OpenAI, vLLM, Ollama, gateways.

The SDK is used for transport alone. Its own retries are off: each attempt here is admitted by the ledger, bounded in
time as a whole (a server that trickles bytes does not escape), and counted. The key leaves this module only in the
Authorization header; what a server says is scrubbed of it before it is shown.
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
from kernelblaster.models.base import BadKey, BadReply, Reply, Request, Usage
from kernelblaster.models.completion import estimate_usage, read_completion, request_body
from kernelblaster.models.endpoint import OPENAI_URL, endpoint_of
from kernelblaster.models.faults import Again, Fault, bad_reply_fault, sdk_fault, timeout_fault
from kernelblaster.models.ledger import CostLedger
from kernelblaster.models.prices import Price
from kernelblaster.models.reservations import reserved

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
        async with slots:
            while True:
                try:
                    return await self._attempt(client, request)
                except _AttemptFailed as failed:
                    fault = failed.fault
                tried[fault.again] += 1
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

    async def _attempt(self, client: openai.AsyncOpenAI, request: Request) -> Reply:
        async with reserved(self._ledger, request, self._price, self._config.max_completion_tokens) as least:
            began = time.monotonic()
            try:
                body, content_type = await self._post(client, request)
                return self._read(request, body, content_type, began)
            except _AttemptFailed as failed:
                if failed.fault.maybe_charged:
                    self._record_useless(request, least, began, type(failed.fault.error).__name__)
                raise
            except asyncio.CancelledError:
                # Interrupted, or another call stopped the run: the provider has the question and goes on answering.
                self._record_useless(request, least, began, "Cancelled")
                raise

    def _record_useless(self, request: Request, least: Usage, began: float, outcome: str) -> None:
        """Count a call that nothing came of and that may be charged."""
        seconds = time.monotonic() - began
        self._ledger.record(request, least, model=self.name, seconds=seconds, outcome=outcome)

    async def _post(self, client: openai.AsyncOpenAI, request: Request) -> tuple[bytes, str]:
        left = self._ledger.seconds_left()
        limit = self._config.timeout_s if left is None else min(self._config.timeout_s, left)
        body = request_body(self._config, request, self._limit_name)
        try:
            async with asyncio.timeout(limit):
                response = await client.chat.completions.with_raw_response.create(**body)
        except (TimeoutError, openai.APITimeoutError):
            raise _AttemptFailed(timeout_fault(self.endpoint, limit)) from None
        except openai.BadRequestError as error:
            if self._limit_name in body and self._limit_name in error.message and self._limit_name != "max_tokens":
                self._limit_name = "max_tokens"
                return await self._post(client, request)
            raise _AttemptFailed(sdk_fault(error, self.endpoint, self._scrub)) from None
        except openai.OpenAIError as error:
            raise _AttemptFailed(sdk_fault(error, self.endpoint, self._scrub)) from None
        return response.content, response.headers.get("content-type", "")

    def _read(self, request: Request, body: bytes, content_type: str, began: float) -> Reply:
        try:
            if len(body) > LARGEST_REPLY:
                raise BadReply(f"the reply has {len(body)} bytes", hint="set --max-completion-tokens")
            completion = read_completion(body, content_type)
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
