"""From a configuration to a model."""

from __future__ import annotations

from pathlib import Path

from kernelblaster.config import ModelConfig, ModelKind
from kernelblaster.errors import UsageError
from kernelblaster.models.base import ChatModel
from kernelblaster.models.batch_exchange import BatchExchangeModel
from kernelblaster.models.ledger import CostLedger
from kernelblaster.models.prices import price_of
from kernelblaster.models.recorded import RecordedModel, RecordingHeader, RecordingModel


def build_model(config: ModelConfig, exchange: Path, ledger: CostLedger, device: str | None = None) -> ChatModel:
    """The model that `config` names.

    Args:
        config: for a kind other than `recorded`, `recording` names a file that every exchange is added to.
        exchange: directory of a batch exchange; unused by the other kinds.
        ledger: told of every call, and asked before it.
        device: what the run measures on; noted in a recording that is made.

    Raises UsageError when dollars are capped and the price is unknown, when a recording is missing or cannot be
    read, and BadKey.
    """
    if config.kind == ModelKind.RECORDED:
        if config.recording is None:
            raise UsageError("no recording is named", hint="give --recording FILE")
        return RecordedModel(config.recording, ledger)
    if config.kind not in tuple(ModelKind):
        raise UsageError(f"no model of kind {config.kind!r} can be built", hint=f"use {', '.join(ModelKind)}")
    model = _asking(config, exchange, ledger)
    if config.recording is None:
        return model
    how = config.kind
    return RecordingModel(model, config.recording, RecordingHeader.now(model=config.name, how=how, device=device))


def _asking(config: ModelConfig, exchange: Path, ledger: CostLedger) -> ChatModel:
    price = price_of(config)
    ledger.require_price(price is not None, config.name)
    if config.kind == ModelKind.BATCH_EXCHANGE:
        return BatchExchangeModel(config, exchange, ledger, price)
    # The SDK takes half a second to import, and neither exchanges nor recordings need it.
    from kernelblaster.models.openai_api import OpenAiModel

    return OpenAiModel(config, ledger, price)
