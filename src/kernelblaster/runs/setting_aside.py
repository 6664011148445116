"""Moves searches out of the way that a run begins anew: nothing of them is deleted, and nothing answers again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import ValidationError

from kernelblaster.agent.files import StoredReply
from kernelblaster.models.base import Request
from kernelblaster.models.batch_exchange import ExchangeFolder, first_id
from kernelblaster.records.layout import ASIDE


def set_aside(searches: Iterable[Path], exchange: ExchangeFolder, model: str) -> None:
    """Rename directories of searches, those that there are, whose questions `model` was asked.

    A batch exchange would find the old replies by their requests: it is told first, so that a kill leaves no search
    set aside whose replies are found again.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for directory in searches:
        if directory.exists():
            exchange.set_aside(first_id(model, request) for request in _requests(directory))
            directory.rename(directory.with_name(f"{directory.name}{ASIDE}{stamp}"))


def _requests(directory: Path) -> Iterator[Request]:
    """What a search has asked, answered or not; a file of another version, or one cut off with the power, is none."""
    for path in directory.glob("questions/**/*.json"):
        try:
            yield Request.model_validate_json(path.read_bytes())
        except ValidationError:
            continue
    for path in directory.glob("replies/**/*.json"):
        try:
            yield StoredReply.model_validate_json(path.read_bytes()).request
        except ValidationError:
            continue
