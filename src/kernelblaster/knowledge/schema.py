"""The shape of `optimization_database.json`."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict

FORMAT = "kernelblaster-knowledge-1"


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StateGroup(StrEnum):
    """Which resource a state's bottleneck belongs to."""

    MEMORY = "memory"
    COMPUTE = "compute"
    LATENCY = "latency"
    HYBRID = "hybrid"
    OVERHEAD = "overhead"


class StateEntry(_Entry):
    """A bottleneck pattern."""

    group: StateGroup
    primary_bottleneck: str
    secondary_characteristics: tuple[str, ...]
    techniques: tuple[str, ...]


class TechniqueEntry(_Entry):
    """An optimisation."""

    category: str
    summary: str
    how_to: tuple[str, ...]


class KnowledgeDocument(_Entry):
    """The whole file."""

    format: Literal["kernelblaster-knowledge-1"]
    states: dict[str, StateEntry]
    techniques: dict[str, TechniqueEntry]
