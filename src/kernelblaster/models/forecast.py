"""What a search may cost, told before it starts."""

from __future__ import annotations

from dataclasses import dataclass

from kernelblaster.config import SearchConfig, SearchPart
from kernelblaster.models.calls import SpendingTotals
from kernelblaster.models.prices import Price

TYPICAL_PROMPT, TYPICAL_REPLY = 3_600, 3_800
"""Tokens of a request for a kernel and its reply: means over the 114 of them in the shipped recordings, whose token
counts are estimates, and whose author's reasoning is not counted."""
LESSON_PROMPT, LESSON_REPLY = 1_400, 100
"""Tokens of a question about a measured pair and its answer, at their longest; without reasoning."""
CALLS_ENOUGH = 5
"""Calls of the run itself after which their mean is better evidence."""


@dataclass(frozen=True)
class Forecast:
    """A search in which every step takes one reply and none ends early.

    Attributes:
        steps: that it takes at most; a step that fails asks again, at most `repairs` times.
        calls: one for each step, and the reflections, reviews and lessons.
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
    turns = problems * search.rounds * (search.steps if search.has(SearchPart.ARCHIVE) else 1)
    lessons = turns * search.lesson_pairs if search.has(SearchPart.PAIR_LESSONS) else 0
    calls = steps + reflections + reviews + lessons
    observed = before.calls >= CALLS_ENOUGH
    prompts = (calls - lessons) * TYPICAL_PROMPT + lessons * LESSON_PROMPT
    replies = (calls - lessons) * TYPICAL_REPLY + lessons * LESSON_REPLY
    if observed:
        prompts, replies = (
            round(calls * tokens / before.calls) for tokens in (before.prompt_tokens, before.completion_tokens)
        )
    return Forecast(
        steps=steps,
        repairs=search.allowed_repairs,
        calls=calls,
        prompt_tokens=prompts,
        completion_tokens=replies,
        dollars=price.dollars(prompts, replies) if price else None,
        observed=observed,
    )
