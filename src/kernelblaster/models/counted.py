"""Puts any `ChatModel` under the caps and into the ledger of a run."""

from __future__ import annotations

import time
from dataclasses import dataclass

from kernelblaster.models.base import ChatModel, Reply, Request
from kernelblaster.models.ledger import CostLedger
from kernelblaster.models.prices import Price
from kernelblaster.models.reservations import reserved

FREE = Price(prompt=0.0, completion=0.0)
_NO_DOLLARS = "let its replies tell dollars in their usage, or cap tokens"


@dataclass(frozen=True)
class CountedModel:
    """Asks `inner` while the caps of `ledger` allow it, and records what every call cost. Satisfies `ChatModel`."""

    inner: ChatModel
    ledger: CostLedger

    @property
    def name(self) -> str:
        """Of the inner model."""
        return self.inner.name

    async def complete(self, request: Request) -> Reply:
        """Answer; a reply that was paid for before a kill is handed out again.

        Raises CapReached, UsageError when dollars are capped and a reply has no price, and what `inner` raises.
        """
        arrived = self.ledger.arrived(request)
        if arrived is not None:
            return arrived
        # Nothing is known of its price before the first reply, nor of how long its replies may be.
        async with reserved(self.ledger, request, FREE, None):
            began = time.monotonic()
            reply = await self.inner.complete(request)
            seconds = time.monotonic() - began
            self.ledger.record(request, reply.usage, model=reply.model, seconds=seconds, reply=reply)
        self.ledger.require_price(reply.usage.dollars is not None, self.name, _NO_DOLLARS)
        return reply

    def answerable(self, tags: dict[str, str]) -> frozenset[str] | None:
        """Of the inner model."""
        return self.inner.answerable(tags)
