"""Several models of one endpoint, each for its purposes: a cheap one for repairs, several by weight for drafts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate

from kernelblaster.config import ModelConfig
from kernelblaster.models.base import ChatModel, Purpose, Reply, Request
from kernelblaster.models.stages import models_of, shares_of


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

    All but names and prices is shared. Raises UsageError for a stage that cannot be read, and what `build` raises.
    """
    models = {name: build(one) for name, one in models_of(config).items()}
    if len(models) == 1:
        return models[config.name]
    mixtures = {
        purpose: Mixture(tuple(models[name] for name in own), tuple(own.values()))
        for purpose, own in shares_of(config).items()
    }
    return StagedModel(models[config.name], mixtures)
