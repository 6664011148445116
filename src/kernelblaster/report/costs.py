"""What replies cost, and what a doubling of speed cost: tokens, and dollars where every price is known.

A doubling is the one unit of gain that adds up over steps and problems and reads at once: a kernel that is four times
as fast is two doublings away from its start, one of 1.41 times is half of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from kernelblaster.agent.events import Generated, LessonsDrawn
from kernelblaster.models.base import sum_dollars
from kernelblaster.report.scales import short

UNKNOWN = "price unknown"


@dataclass(frozen=True)
class Cost:
    """Tokens of prompts and replies, and dollars; dollars are None where any price is unknown."""

    tokens: int = 0
    dollars: float | None = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.tokens + other.tokens, sum_dollars(self.dollars, other.dollars))

    @property
    def told(self) -> str:
        """`21.3 k tokens, $0.07`"""
        return f"{short(self.tokens)} tokens, {money(self.dollars)}"

    @property
    def figures(self) -> tuple[str, str]:
        """Both, as two cells of a table have them."""
        return short(self.tokens), money(self.dollars)

    def per_doubling(self, gain: float) -> Cost | None:
        """What a doubling of speed cost, of a gain in natural logarithms; None where nothing was gained or asked."""
        if gain <= 0 or not self.tokens:
            return None
        doublings = gain / math.log(2)
        dollars = None if self.dollars is None else self.dollars / doublings
        return Cost(round(self.tokens / doublings), dollars)


def cost_of(calls: Iterable[Generated | LessonsDrawn]) -> Cost:
    """Of these calls together."""
    each = (Cost(call.prompt_tokens + call.completion_tokens, call.dollars) for call in calls)
    return sum(each, start=Cost())


def total(dollars: float | None) -> str:
    """What a run spent, to the cent."""
    return UNKNOWN if dollars is None else f"${dollars:.2f}"


def money(dollars: float | None) -> str:
    """Dollars with as many digits as it takes to see them; a recording charges nothing."""
    if dollars is None:
        return UNKNOWN
    if dollars == 0:
        return "nothing charged"
    digits = max(2, 1 - math.floor(math.log10(dollars)))
    return f"${dollars:,.{digits}f}"
