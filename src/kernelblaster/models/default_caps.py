"""Caps on what models may charge: those that hold where nobody has set one, and what one on dollars needs."""

from __future__ import annotations

from kernelblaster.config import BudgetConfig, ModelConfig, ModelKind
from kernelblaster.models.calls import SpendingTotals
from kernelblaster.models.ledger import require_price
from kernelblaster.models.stages import price_hint, unpriced

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

    Raises UsageError for stages or prices that cannot be read.
    """
    if model.kind not in _CHARGING or caps.dollars is not None or caps.tokens is not None:
        return caps
    priced = unpriced(model) is None and before.dollars is not None
    return caps.model_copy(update={"dollars": DOLLARS} if priced else {"tokens": TOKENS})


def require_prices(caps: BudgetConfig, model: ModelConfig, before: SpendingTotals) -> None:
    """Raise UsageError when dollars are capped and those of a model that may charge cannot be counted."""
    if model.kind in _CHARGING:
        missing = unpriced(model)
        name = missing or model.name
        require_price(caps, before, known=missing is None, model=name, hint=price_hint(model, name))
