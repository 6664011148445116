"""What `model.stages` says: which models are asked for which purpose, and what is known of what they charge."""

from __future__ import annotations

import math

from kernelblaster.config import ModelConfig, ModelKind
from kernelblaster.errors import UsageError
from kernelblaster.models.base import Purpose
from kernelblaster.models.prices import Price, listed_prices, price_of, undated

Shares = dict[str, float]
"""Model -> weight, of those that share the requests of a purpose."""


def check_models(config: ModelConfig) -> None:
    """Raise UsageError for stages or prices that cannot be read, and stages of a kind that has one model for all."""
    if config.stages and config.kind != ModelKind.OPENAI_API:
        raise UsageError(
            f"model.stages: {config.kind} has one model for all", hint="leave them out, or ask an endpoint"
        )
    models = models_of(config)
    for one in models.values():
        price_of(one)
    unasked = set(listed_prices(config)) - {name for one in models for name in (one, undated(one))}
    if unasked:
        raise UsageError(
            f"model.prices: no model is called {min(unasked)}", hint=f"models that may be asked: {', '.join(models)}"
        )


def shares_of(config: ModelConfig) -> dict[Purpose, Shares]:
    """The models of each purpose that has its own. Raises UsageError."""
    return dict(_stage(stage) for stage in config.stages)


def models_of(config: ModelConfig) -> dict[str, ModelConfig]:
    """Each model that may be asked by its name, the general one first. Raises UsageError.

    `--price` is of `name` and its dated snapshots; everything else is shared.
    """
    names = {name for shares in shares_of(config).values() for name in shares}
    return {config.name: config} | {name: _for(config, name) for name in sorted(names - {config.name})}


def unpriced(config: ModelConfig) -> str | None:
    """A model that may be asked and whose price is unknown; None where there is none. Raises UsageError."""
    return next((name for name, one in models_of(config).items() if price_of(one) is None), None)


def price_of_drafts(config: ModelConfig) -> Price | None:
    """The mean price of those that write kernels, by their weights; None where one is unknown. Raises UsageError."""
    models = models_of(config)
    shares = shares_of(config).get(Purpose.GENERATE, {config.name: 1.0})
    priced = [(weight, price_of(models[name])) for name, weight in shares.items()]
    known = [(weight / sum(shares.values()), price) for weight, price in priced if price is not None]
    if len(known) < len(priced):
        return None
    return Price(
        prompt=sum(share * price.prompt for share, price in known),
        completion=sum(share * price.completion for share, price in known),
    )


def price_hint(config: ModelConfig, model: str) -> str:
    """What tells the price of one of the configured models, or does without."""
    option = f"--set model.prices={model}=IN:OUT, others between commas" if config.stages else "--price IN OUT"
    return f"give {option} (dollars per million prompt and completion tokens), or cap --max-tokens"


def _for(config: ModelConfig, name: str) -> ModelConfig:
    own = undated(name) == config.name
    prices = {field: None for field in ModelConfig.model_fields if field.startswith("dollars_per_million")}
    return config.model_copy(update={"name": name} | ({} if own else prices))


def _stage(text: str) -> tuple[Purpose, Shares]:
    """A purpose, and its models' names with their weights."""
    purpose, _, named = (part.strip() for part in text.partition("="))
    shares = [_share(one) for one in named.split("+")]
    names = [name for name, _ in shares]
    if purpose not in set(Purpose) or len(set(names)) < len(names) or not all(map(_is_share, shares)):
        known = ", ".join(Purpose)
        raise UsageError(
            f"model.stages: {text!r} is no stage",
            hint=f"write PURPOSE=NAME, or PURPOSE=NAME*3+OTHER for weights; purposes are {known}",
        )
    return Purpose(purpose), {name: float(weight) for name, weight in shares}


def _share(text: str) -> tuple[str, str]:
    name, _, weight = (part.strip() for part in text.partition("*"))
    return name, weight if "*" in text else "1"


def _is_share(share: tuple[str, str]) -> bool:
    name, weight = share
    try:
        value = float(weight)
    except ValueError:
        return False
    return bool(name) and value > 0 and math.isfinite(value)
