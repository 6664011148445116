"""Room under the caps for calls in flight: what a call will cost is held before it is made.

Its prompt is known, its reply is taken to be as long as the longest so far. Calls that would together pass a cap wait
for those in flight, whose replies mostly leave room. So a cap is passed by what one reply is longer than all before it;
by the first reply, of which nothing is known, by all of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kernelblaster.models.base import Request, Usage
from kernelblaster.models.completion import estimate_usage
from kernelblaster.models.ledger import CapReached, CostLedger
from kernelblaster.models.prices import Price

FIRST_REPLY = 8_000
"""Tokens a reply is taken to have while none has come: twice the mean of the shipped recordings."""
_POLL_S = 0.1
"""Between looks at the ledger, which threads and event loops share."""


def expected_usage(ledger: CostLedger, request: Request, price: Price | None, longest: int | None) -> Usage:
    """What a call will cost.

    Args:
        ledger: knows how long replies were.
        request: that will be asked.
        price: of tokens; None where it is unknown, and dollars are.
        longest: tokens that a reply may have; None where the endpoint decides.
    """
    least = estimate_usage(request, "", price)
    seen = ledger.longest_reply
    reply = FIRST_REPLY if seen is None else seen
    reply = reply if longest is None else min(reply, longest)
    dollars = price.dollars(least.prompt_tokens, reply) if price else least.dollars
    return least.model_copy(update={"completion_tokens": reply, "dollars": dollars})


@asynccontextmanager
async def reserved(
    ledger: CostLedger, request: Request, price: Price | None, longest: int | None
) -> AsyncIterator[Usage]:
    """Hold room for one call, waiting for calls in flight if that may help; gives its prompt alone as a usage.

    Raises CapReached when there is no room.
    """
    least = estimate_usage(request, "", price)
    while True:
        expected = expected_usage(ledger, request, price, longest)
        try:
            ledger.take(expected, least)
            break
        except CapReached as refused:
            if not refused.may_pass:
                raise
        await asyncio.sleep(_POLL_S)
    try:
        yield least
    finally:
        ledger.give_back(expected)
