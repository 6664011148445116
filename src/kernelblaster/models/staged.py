"""Several models of one endpoint, each for its purposes: a cheap one for repairs, several by weight for drafts."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate

from kernelblaster.config import ModelConfig
from kernelblaster.errors import UsageError
from kernelblaster.models.base import ChatModel, Purpose, Reply, Request


@dataclass(frozen=True)
class Mixture:
    """Models that share the requests of a purpose in proportion to their weights.

    Who answers follows from the request's slot alone: the same model is asked after a kill.
    """

    models: tuple[ChatModel, ...]
    weights: tuple[float, ...]

    def of(self, slot: str) -> ChatModel:
        """Whose turn a slot is."""
        drawn = int.from_bytes(hashlib.sha256(slot.encode()).digest()[:8], "big") / 2**64 * sum(self.weights)
        bounds = zip(self.models, accumulate(self.weights), strict=True)
        return next((model for model, bound in bounds if drawn < bound), self.models[-1])


@dataclass(frozen=True)
class StagedModel:
    """Asks other models where a purpose has its own."""

    general: ChatModel
    of_purpose: Mapping[Purpose, Mixture]

    @property
    def name(self) -> str:
        """That of the general model; replies and the ledger tell who answered."""
        return self.general.name

    async def complete(self, request: Request) -> Reply:
        """The reply of a model for the request's purpose. Raises what that model raises."""
        mixture = self.of_purpose.get(request.purpose)
        return await (mixture.of(request.slot) if mixture else self.general).complete(request)

    def answerable(self, tags: dict[str, str]) -> frozenset[str] | None:
        """What the general model can answer."""
        return self.general.answerable(tags)


def staged(config: ModelConfig, build: Callable[[ModelConfig], ChatModel]) -> ChatModel:
    """The model of a configuration, with one more for each other name in its `stages`.

    Prices that are configured are those of `name`; other models have those of the price list. All else is shared.
    Raises UsageError for a stage that cannot be read, and what `build` raises.
    """
    general = build(config)
    shares = dict(_stage(stage) for stage in config.stages)
    names = {name for own in shares.values() for name in own}
    if names <= {config.name}:
        return general
    models = {name: build(_for(config, name)) for name in sorted(names - {config.name})} | {config.name: general}
    mixtures = {
        purpose: Mixture(tuple(models[name] for name in own), tuple(own.values())) for purpose, own in shares.items()
    }
    return StagedModel(general, mixtures)


def _for(config: ModelConfig, name: str) -> ModelConfig:
    prices = {field: None for field in ModelConfig.model_fields if field.startswith("dollars_per_million")}
    return config.model_copy(update={"name": name, **prices})


def _stage(text: str) -> tuple[Purpose, dict[str, float]]:
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
