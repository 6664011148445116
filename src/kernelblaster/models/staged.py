"""Several models of one endpoint, each for its purposes: a cheap one for repairs, a strong one for first drafts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kernelblaster.config import ModelConfig
from kernelblaster.errors import UsageError
from kernelblaster.models.base import ChatModel, Purpose, Reply, Request


@dataclass(frozen=True)
class StagedModel:
    """Asks another model where a purpose has one of its own."""

    general: ChatModel
    of_purpose: Mapping[Purpose, ChatModel]

    @property
    def name(self) -> str:
        """That of the general model; replies and the ledger tell who answered."""
        return self.general.name

    async def complete(self, request: Request) -> Reply:
        """The reply of the model for the request's purpose. Raises what that model raises."""
        return await self.of_purpose.get(request.purpose, self.general).complete(request)

    def answerable(self, tags: dict[str, str]) -> frozenset[str] | None:
        """What the general model can answer."""
        return self.general.answerable(tags)


def staged(config: ModelConfig, build: Callable[[ModelConfig], ChatModel]) -> ChatModel:
    """The model of a configuration, with one more for each name in its `stages`.

    Prices that are configured are those of `name`; other models have those of the price list. All else is shared.
    Raises UsageError for a stage that cannot be read, and what `build` raises.
    """
    general = build(config)
    named = dict(_stage(stage) for stage in config.stages)
    others = {name: build(_for(config, name)) for name in sorted(set(named.values()) - {config.name})}
    if not others:
        return general
    return StagedModel(general, {purpose: others[name] for purpose, name in named.items() if name in others})


def _for(config: ModelConfig, name: str) -> ModelConfig:
    prices = {field: None for field in ModelConfig.model_fields if field.startswith("dollars_per_million")}
    return config.model_copy(update={"name": name, **prices})


def _stage(text: str) -> tuple[Purpose, str]:
    purpose, _, name = (part.strip() for part in text.partition("="))
    if purpose not in set(Purpose) or not name:
        known = ", ".join(Purpose)
        raise UsageError(f"model.stages: {text!r} is no stage", hint=f"write PURPOSE=NAME; purposes are {known}")
    return Purpose(purpose), name
