"""From a configuration to a model."""

from __future__ import annotations

from pathlib import Path

from kernelblaster.config import ModelConfig
from kernelblaster.models.backends import BACKENDS
from kernelblaster.models.base import ChatModel
from kernelblaster.models.ledger import CostLedger
from kernelblaster.models.recorded import RecordedModel, RecordingHeader, RecordingModel
from kernelblaster.models.staged import staged
from kernelblaster.models.stages import check_models


def build_model(
    config: ModelConfig, exchange: Path, ledger: CostLedger, device: str | None = None, *, archive: bool = False
) -> ChatModel:
    """The model that `config` names.

    Args:
        config: for a kind other than `recorded`, `recording` names a file that every exchange is added to.
        exchange: directory of a batch exchange; unused by the other kinds.
        ledger: told of every call, and asked before it.
        device: what the run measures on; noted in a recording that is made.
        archive: whether the search hands out replies from an archive; noted there, too.

    Raises UsageError for an unknown kind, for stages that it cannot have, when dollars are capped and a price is
    unknown, when a recording is missing or cannot be read, and BadKey.
    """
    backend = BACKENDS.get(config.kind)
    check_models(config)
    model = staged(config, lambda one: backend.build(one, exchange, ledger))
    if config.recording is None or isinstance(model, RecordedModel):
        return model
    header = RecordingHeader.now(model=config.name, how=config.kind, device=device, archive=archive)
    return RecordingModel(model, config.recording, header)
