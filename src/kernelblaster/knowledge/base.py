"""The knowledge base as the agent sees it: a read-only view over one loaded document."""

from __future__ import annotations

from collections.abc import Mapping, Set

import numpy as np

from kernelblaster.devices.base import DeviceFacts, Profile
from kernelblaster.knowledge.decisions import Classification, Selection, SelectionContext
from kernelblaster.knowledge.schema import KnowledgeDocument, StateEntry, TechniqueEntry


class KnowledgeBase:
    """States, techniques and what was measured with them, with all recorded changes in effect."""

    def __init__(self, document: KnowledgeDocument) -> None:
        self.document = document

    @property
    def states(self) -> Mapping[str, StateEntry]:
        """State id -> entry."""
        return self.document.states

    @property
    def techniques(self) -> Mapping[str, TechniqueEntry]:
        """Technique id -> entry."""
        return self.document.techniques

    def classify(
        self, profile: Profile, facts: DeviceFacts, floor_fraction: float | None, *, call_us: float | None = None
    ) -> Classification:
        """Name the bottleneck of a profiled call.

        Args:
            profile: of one call.
            facts: of the device it was taken on.
            floor_fraction: roofline floor / time of the call; None when the call was not timed.
            call_us: time of the whole call in microseconds, which shows time spent outside kernels.
        """
        raise NotImplementedError

    def select(
        self,
        state: str,
        context: SelectionContext,
        rng: np.random.Generator,
        tabu: Set[str] = frozenset(),
        allowed: Set[str] | None = None,
    ) -> Selection:
        """Draw the technique to try next. Raises NoTechnique, and KeyError for an unknown state."""
        raise NotImplementedError
