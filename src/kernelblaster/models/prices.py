"""What tokens cost: as configured, else a small dated table of OpenAI's own list prices, else unknown.

Prices age and other hosts charge their own, so the table holds only for api.openai.com and says from when it is.
A discount (batches, flex tiers) is not modelled: the dollars are then an upper bound.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from kernelblaster.config import ModelConfig
from kernelblaster.errors import UsageError

OPENAI_HOST = "api.openai.com"
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
    """The configured price, else the table's for OpenAI's own endpoint, else None. Raises UsageError on half a price.

    A date at the end of a model name is ignored: `gpt-5-mini-2025-08-07` costs what `gpt-5-mini` does.
    """
    prompt, completion = config.dollars_per_million_prompt, config.dollars_per_million_completion
    if prompt is not None and completion is not None:
        cached = config.dollars_per_million_cached_prompt
        return Price(prompt=prompt, completion=completion, cached_prompt=cached)
    if prompt is not None or completion is not None:
        raise UsageError(
            "only one of the prices of prompt and completion tokens is given", hint="give both: --price IN OUT"
        )
    if config.base_url is not None and urlsplit(config.base_url).hostname != OPENAI_HOST:
        return None
    return price_table().models.get(_DATED.sub("", config.name))
