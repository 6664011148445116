"""Lines of a cost ledger, and sums over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, Field, TypeAdapter

from kernelblaster.models.base import Purpose, Usage, sum_dollars


class StartLine(BaseModel):
    """One start of the run."""

    kind: Literal["start"] = "start"
    format: Literal["kernelblaster-ledger-1"] = "kernelblaster-ledger-1"
    at: float
    """Seconds since the epoch."""


class CallLine(BaseModel):
    """One call that reached the model."""

    kind: Literal["call"] = "call"
    at: float
    """Seconds since the epoch, at its end."""
    slot: str
    purpose: Purpose
    problem: str | None
    """The request's `problem` tag."""
    digest: str
    """Of slot and messages."""
    model: str
    usage: Usage
    seconds: float
    outcome: str
    """`ok`, or the name of the error that made a call useless that may have been charged."""
    answer: str | None = None
    """Which stored answer was handed out, for models that have such."""


Line = TypeAdapter(Annotated[StartLine | CallLine, Field(discriminator="kind")])


@dataclass(frozen=True)
class SpendingTotals:
    """Sums over calls.

    Attributes:
        dollars: None when the price of any call is unknown; 0.0 for no calls.
        estimated: whether any call's tokens are an estimate.
        seconds: summed over calls, which overlap.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_prompt_tokens: int = 0
    reasoning_tokens: int = 0
    dollars: float | None = 0.0
    estimated: bool = False
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens."""
        return self.prompt_tokens + self.completion_tokens

    def plus(self, usage: Usage, seconds: float = 0.0) -> SpendingTotals:
        """These and one more call."""
        return SpendingTotals(
            calls=self.calls + 1,
            prompt_tokens=self.prompt_tokens + usage.prompt_tokens,
            completion_tokens=self.completion_tokens + usage.completion_tokens,
            cached_prompt_tokens=self.cached_prompt_tokens + usage.cached_prompt_tokens,
            reasoning_tokens=self.reasoning_tokens + usage.reasoning_tokens,
            dollars=sum_dollars(self.dollars, usage.dollars),
            estimated=self.estimated or usage.estimated,
            seconds=self.seconds + seconds,
        )
