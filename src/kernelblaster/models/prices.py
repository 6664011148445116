"""What tokens cost: as configured, else a small dated table of OpenAI's own list prices, else unknown.

Prices age and other hosts charge their own, so the table holds only for api.openai.com and says from when it is.
A discount (batches, flex tiers) is not modelled: the dollars are then an upper bound.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from kernelblaster.config import ModelConfig
from kernelblaster.errors import UsageError

OPENAI_HOST = "api.openai.com"
SEVERAL = "NAME=IN:OUT or NAME=IN:OUT:CACHED"
"""How one of several prices is written."""
_TABLE = Path(__file__).with_name("prices.json")
_DATED = re.compile(r"-\d{4}-\d{2}-\d{2}$")
_MILLION = 1_000_000


class Price(BaseModel):
    """Dollars per million tokens. Reasoning tokens are completion tokens."""

    model_config = ConfigDict(frozen=True)

    prompt: float
    completion: float
    cached_prompt: float | None = None
    """None: cached tokens are charged like others, an upper bound."""

    def dollars(self, prompt_tokens: int, completion_tokens: int, cached_prompt_tokens: int = 0) -> float:
        """Cost of one call; the cached tokens are part of the prompt tokens."""
        cached = min(cached_prompt_tokens, prompt_tokens)
        cached_price = self.prompt if self.cached_prompt is None else self.cached_prompt
        fresh = (prompt_tokens - cached) * self.prompt
        return (fresh + cached * cached_price + completion_tokens * self.completion) / _MILLION


class PriceTable(BaseModel):
    """`prices.json`."""

    as_of: str
    unit: str
    models: dict[str, Price]


def price_table() -> PriceTable:
    """The shipped table."""
    return PriceTable.model_validate_json(_TABLE.read_bytes())


def price_of(config: ModelConfig) -> Price | None:
    """What is configured for the model, else the table's price at OpenAI's own endpoint, else None.

    A dated snapshot costs what its model does: `gpt-5-mini-2025-08-07` has the price of `gpt-5-mini`. Raises UsageError
    for prices that cannot be read, and for half a price.
    """
    known = _single(config) or _of_model(listed_prices(config), config.name)
    if known is not None:
        return known
    if config.base_url is not None and urlsplit(config.base_url).hostname != OPENAI_HOST:
        return None
    return _of_model(price_table().models, config.name)


def undated(name: str) -> str:
    """The model of which `name` is a snapshot, or `name` itself."""
    return _DATED.sub("", name)


def _of_model(prices: Mapping[str, Price], name: str) -> Price | None:
    return prices.get(name) or prices.get(undated(name))


def _single(config: ModelConfig) -> Price | None:
    """That of `--price`. Raises UsageError when only half of it is given."""
    prompt, completion = config.dollars_per_million_prompt, config.dollars_per_million_completion
    if prompt is not None and completion is not None:
        cached = config.dollars_per_million_cached_prompt
        return Price(prompt=prompt, completion=completion, cached_prompt=cached)
    if prompt is not None or completion is not None:
        raise UsageError(
            "only one of the prices of prompt and completion tokens is given", hint="give both: --price IN OUT"
        )
    return None


def listed_prices(config: ModelConfig) -> dict[str, Price]:
    """Those of `model.prices` by name. Raises UsageError."""
    found: dict[str, Price] = {}
    for text in config.prices:
        name, _, numbers = (part.strip() for part in text.rpartition("="))
        dollars = _numbers(numbers)
        if not name or name in found or len(dollars) not in (2, 3):
            raise UsageError(
                f"model.prices: {text!r} is no price" + (f", or the second of {name}" if name in found else ""),
                hint=f"write {SEVERAL}: dollars per million prompt and completion tokens, and cached prompt tokens",
            )
        found[name] = Price(prompt=dollars[0], completion=dollars[1], cached_prompt=dollars[2] if dollars[2:] else None)
    return found


def _numbers(text: str) -> list[float]:
    """Amounts between colons; none where one is no amount."""
    try:
        amounts = [float(part) for part in text.split(":")]
    except ValueError:
        return []
    return amounts if all(amount >= 0 and math.isfinite(amount) for amount in amounts) else []
