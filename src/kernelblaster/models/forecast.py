"""What a search may cost, told before it starts."""

from __future__ import annotations

from dataclasses import dataclass

from kernelblaster.config import SearchConfig, SearchPart
from kernelblaster.models.calls import SpendingTotals
from kernelblaster.models.prices import Price

TYPICAL_PROMPT, TYPICAL_REPLY = 3_600, 3_800
"""Tokens of a request for a kernel and its reply: means over the 114 of them in the shipped recordings, whose token
counts are estimates, and whose author's reasoning is not counted."""
CALLS_ENOUGH = 5
"""Calls of the run itself after which their mean is better evidence."""


@dataclass(frozen=True)
class Forecast:
    """A search in which every step takes one reply and none ends early.

    Attributes:
        steps: that it takes at most; a step that fails asks again, at most `repairs` times.
        calls: one for each step, and the reflections and reviews.
        dollars: None when the price is unknown.
        observed: whether tokens are those of the run's own calls; else of typical ones.
    """

    steps: int
    repairs: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    dollars: float | None
    observed: bool


def forecast(search: SearchConfig, problems: int, price: Price | None, before: SpendingTotals) -> Forecast:
    """What the search of so many problems may cost.

    Args:
        search: its width and depth.
        problems: that are not finished.
        price: of tokens; None where it is unknown.
        before: what earlier starts of the run have asked.
    """
    steps = problems * search.rounds * search.rollouts * search.steps
    reflections = problems * search.rounds if search.has(SearchPart.REFLECTION) else 0
    reviews = problems if search.has(SearchPart.REVIEW) else 0
    calls = steps + reflections + reviews
    observed = before.calls >= CALLS_ENOUGH
    prompt = before.prompt_tokens / before.calls if observed else TYPICAL_PROMPT
    reply = before.completion_tokens / before.calls if observed else TYPICAL_REPLY
    tokens = round(calls * prompt), round(calls * reply)
    return Forecast(
        steps=steps,
        repairs=search.allowed_repairs,
        calls=calls,
        prompt_tokens=tokens[0],
        completion_tokens=tokens[1],
        dollars=price.dollars(*tokens) if price else None,
        observed=observed,
    )
