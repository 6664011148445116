"""The one file of the knowledge base, safe for many writers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelblaster.knowledge.base import KnowledgeBase
from kernelblaster.knowledge.changes import Change, Provenance
from kernelblaster.replay.transition import Transition


class KnowledgeStore:
    """`optimization_database.json` at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> KnowledgeBase:
        """Read the file. Raises KnowledgeError when it is missing, unreadable or damaged."""
        raise NotImplementedError

    def record(self, transition: Transition) -> bool:
        """Add a transition to the statistics; False when it had been added before. Safe for many processes."""
        raise NotImplementedError

    def apply(self, changes: Sequence[Change], provenance: Provenance) -> list[str]:
        """Apply typed changes as additions; one line per change: applied, or refused and why."""
        raise NotImplementedError
