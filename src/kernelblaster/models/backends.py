"""Kinds of models by name: what each needs of the configuration, and how it is built."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Protocol

from pydantic import SecretStr

from kernelblaster.config import ModelConfig, ModelKind
from kernelblaster.errors import UsageError
from kernelblaster.models.base import ChatModel
from kernelblaster.models.batch_exchange import BatchExchangeModel
from kernelblaster.models.endpoint import endpoint_of
from kernelblaster.models.ledger import CostLedger
from kernelblaster.models.prices import Price, price_of
from kernelblaster.models.recorded import RecordedModel, read_recording
from kernelblaster.models.stages import price_hint
from kernelblaster.paths import data_dir
from kernelblaster.registry import Registry

SHIPPED_RECORDING = "recordings/h200.jsonl.gz"
RECORDED_EMULATED = "recordings/emulated/softmax.jsonl.gz"
"""What answers for its problem before the shipped recording does: a search of today, on the emulated device."""


class ModelBackend(Protocol):
    """One kind of model."""

    def complete(self, config: ModelConfig) -> ModelConfig:
        """The configuration with what it leaves open filled in. Raises UsageError for what it lacks."""
        ...

    def describe(self, config: ModelConfig) -> str:
        """Which model this is, in a few words; of a completed configuration."""
        ...

    def build(self, config: ModelConfig, exchange: Path, ledger: CostLedger) -> ChatModel:
        """The model.

        Args:
            config: completed.
            exchange: directory of a batch exchange, for those that need one.
            ledger: told of every call, and asked before it.

        Raises UsageError.
        """
        ...


BACKENDS: Registry[ModelBackend] = Registry("model kind", ModelBackend)


class OpenAiBackend:
    """Any chat completions endpoint."""

    def complete(self, config: ModelConfig) -> ModelConfig:
        """Needs a key or an address."""
        if config.api_key is None and config.base_url is None:
            raise UsageError("no API key", hint="set OPENAI_API_KEY, or --base-url for a local server")
        # Local servers ignore the key, and the SDK insists on one.
        return config.model_copy(update={"api_key": config.api_key or SecretStr("none")})

    def describe(self, config: ModelConfig) -> str:
        """Name and host."""
        return f"{config.name} over {endpoint_of(config)}"

    def build(self, config: ModelConfig, exchange: Path, ledger: CostLedger) -> ChatModel:
        """Asks over HTTP."""
        # The SDK takes half a second to import, and neither exchanges nor recordings need it.
        from kernelblaster.models.openai_api import OpenAiModel

        return OpenAiModel(config, ledger, _price(config, ledger))


class BatchExchangeBackend:
    """Files that somebody else answers."""

    def complete(self, config: ModelConfig) -> ModelConfig:
        """Needs an address, if any, that can be read: what answers may be charged for is read off it."""
        endpoint_of(config)
        return config

    def describe(self, config: ModelConfig) -> str:
        """Always the same."""
        return "batch exchange of files"

    def build(self, config: ModelConfig, exchange: Path, ledger: CostLedger) -> ChatModel:
        """Writes requests into the exchange."""
        return BatchExchangeModel(config, exchange, ledger, _price(config, ledger))


class RecordedBackend:
    """Exchanges of an earlier search."""

    def complete(self, config: ModelConfig) -> ModelConfig:
        """Needs a recording: those that ship answer where none is named."""
        recording = config.recording or shipped_recording()
        if not recording.exists():
            raise UsageError(f"no recording at {recording}", hint="give --recording FILE, or set OPENAI_API_KEY")
        return config.model_copy(update={"name": "recorded"})

    def describe(self, config: ModelConfig, problems: Collection[str] = ()) -> str:
        """The file; of those that ship, the ones that answer for `problems`, or for any where none is named."""
        if config.recording is not None:
            return f"replays {config.recording.name}"
        shipped = shipped_recording().parent
        return f"replays {' and '.join(str(path.relative_to(shipped)) for path in _answering(problems))}"

    def build(self, config: ModelConfig, exchange: Path, ledger: CostLedger) -> ChatModel:
        """Answers from the file, or from those that ship."""
        if config.recording is not None:
            return RecordedModel(config.recording, ledger)
        return RecordedModel(shipped_recording(), ledger, before=data_dir() / RECORDED_EMULATED)


def shipped_recording() -> Path:
    """The recording that comes with the package."""
    return data_dir() / SHIPPED_RECORDING


def _answering(problems: Collection[str]) -> list[Path]:
    """Which of the recordings that ship answer for problems."""
    first = data_dir() / RECORDED_EMULATED
    recorded = read_recording(first).problems
    own = [first] if not problems or recorded.intersection(problems) else []
    return own if problems and recorded.issuperset(problems) else [*own, shipped_recording()]


def _price(config: ModelConfig, ledger: CostLedger) -> Price | None:
    """What tokens cost. Raises UsageError when dollars are capped and that is unknown."""
    price = price_of(config)
    ledger.require_price(price is not None, config.name, price_hint(config, config.name))
    return price


BACKENDS.register(ModelKind.OPENAI_API, OpenAiBackend(), "a chat completions endpoint")
BACKENDS.register(ModelKind.BATCH_EXCHANGE, BatchExchangeBackend(), "request and reply files that somebody answers")
BACKENDS.register(ModelKind.RECORDED, RecordedBackend(), "replies of an earlier search")
