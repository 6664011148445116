"""Typed changes to the knowledge base that reflection may propose.

Only their shape is here; `amend` decides whether one is accepted and what it adds.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.problems.families import OpFamily
from kernelblaster.problems.problem import Precision

_Line = Annotated[str, Field(max_length=240)]
"""Prompts have a budget, and show a technique whole."""


class _Change(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    reason: str = Field(max_length=400)
    """What in the round's transitions supports it."""


class AddLesson(_Change):
    """Remember one transferable sentence."""

    kind: Literal["add_lesson"]
    text: str = Field(min_length=20, max_length=300)
    state: str | None = None
    technique: str | None = None
    op_family: OpFamily | None = None
    precision: Precision | None = None


class AdjustRule(_Change):
    """Move one threshold of a rule within the bounds that the rule declares."""

    kind: Literal["adjust_rule"]
    rule: str
    metric: str
    value: float


class AddTechnique(_Change):
    """Propose a technique; quarantined until it has succeeded often enough."""

    kind: Literal["add_technique"]
    id: str = Field(pattern=r"^[a-z][a-z0-9_]{2,59}$")
    category: str = Field(min_length=3, max_length=40)
    summary: str = Field(min_length=20, max_length=300)
    how_to: tuple[_Line, ...] = Field(min_length=1, max_length=8)
    checks: tuple[_Line, ...] = Field((), max_length=4)
    states: tuple[str, ...] = Field(min_length=1, max_length=4)


class RetireTechnique(_Change):
    """Stop offering a technique in a state on one kind of device; accepted only when its statistics support it."""

    kind: Literal["retire_technique"]
    state: str
    technique: str
    arch: str = Field(pattern=r"^sm_\d+$")
    device_kind: DeviceKind


KnowledgeChange = Annotated[AddLesson | AdjustRule | AddTechnique | RetireTechnique, Field(discriminator="kind")]


class Provenance(BaseModel):
    """Who proposed a change, when it was made and from what."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: str
    model: str
    problem: str | None = None
