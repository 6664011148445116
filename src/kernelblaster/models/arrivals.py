"""Replies that have arrived and are paid for, kept until the run ends.

A kill between the arrival of a reply and the moment in which its node has stored it would lose the reply, and the next
start would pay for it again. So a reply lies here, together with its line of the ledger, before that line is in the
ledger. The next start counts what is not counted yet, and does not ask again for what is here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from kernelblaster.models.base import Reply
from kernelblaster.models.calls import CallLine
from kernelblaster.storage.atomic import sweep_partial_files, write_atomically


class Arrival(BaseModel):
    """A reply and its line in the ledger."""

    model_config = ConfigDict(frozen=True)

    format: Literal["kernelblaster-arrival-1"] = "kernelblaster-arrival-1"
    call: CallLine
    reply: Reply


class Arrivals:
    """A folder with one file for each reply, named by the digest of its request; made with the first."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def put(self, arrival: Arrival) -> None:
        """Keep a reply; it is on disk on return. Raises OSError."""
        write_atomically(self._path(arrival.call.digest), arrival.model_dump_json(), sync_name=True)

    def find(self, digest: str) -> Arrival | None:
        """The reply to the request with this digest; None when there is none, or another version wrote it."""
        try:
            return Arrival.model_validate_json(self._path(digest).read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def __iter__(self) -> Iterator[Arrival]:
        """All of them."""
        found = (self.find(path.stem) for path in sorted(self._directory.glob("*.json")))
        return (arrival for arrival in found if arrival is not None)

    def clear(self) -> None:
        """Remove all: the nodes that asked have stored them."""
        for path in self._directory.glob("*.json"):
            path.unlink(missing_ok=True)
        sweep_partial_files(self._directory)

    def _path(self, digest: str) -> Path:
        return self._directory / f"{digest}.json"
