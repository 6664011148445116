"""Caps of a run for which nobody has set one, where a model may charge."""

from __future__ import annotations

from kernelblaster.config import BudgetConfig, ModelConfig, ModelKind
from kernelblaster.models.calls import SpendingTotals
from kernelblaster.models.prices import price_of

DOLLARS = 10.0
TOKENS = 10_000_000
"""Where the price of tokens is unknown, as for servers of one's own."""
_CHARGING = frozenset({ModelKind.OPENAI_API, ModelKind.BATCH_EXCHANGE})


def with_default_cap(caps: BudgetConfig, model: ModelConfig, before: SpendingTotals) -> BudgetConfig:
    """The caps, with one on dollars, or on tokens where dollars are unknown, unless either is set.

    Args:
        caps: as configured.
        model: that is asked.
        before: what earlier starts of the run have spent.

    Raises UsageError for half a price.
    """
    if model.kind not in _CHARGING or caps.dollars is not None or caps.tokens is not None:
        return caps
    priced = price_of(model) is not None and before.dollars is not None
    return caps.model_copy(update={"dollars": DOLLARS} if priced else {"tokens": TOKENS})
