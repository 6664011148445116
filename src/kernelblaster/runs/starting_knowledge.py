"""Which knowledge base a run begins with. Apart from `choices`, which commands that read none import, too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernelblaster.config import RunConfig
from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.knowledge.store import seed_path, shipped_for
from kernelblaster.records.layout import RunLayout


@dataclass(frozen=True)
class KnowledgeChoice:
    """What an experiment knows at its beginning, and why."""

    start: Path
    reason: str


def choose_knowledge(config: RunConfig, layout: RunLayout, facts: DeviceFacts) -> KnowledgeChoice:
    """The experiment's own knowledge base, else the one that is asked for, else the shipped one for the device."""
    own, given = layout.knowledge_base, config.knowledge_base
    if own.exists():
        merged = f", with {given} merged in" if given is not None else ""
        return KnowledgeChoice(own, f"{own.name} of this experiment{merged}")
    if given is not None:
        return KnowledgeChoice(given, f"{given}: asked for")
    shipped = shipped_for(facts.arch, facts.kind)
    if shipped == seed_path():
        return KnowledgeChoice(shipped, f"{shipped.name}, curated: nothing was measured on this device before")
    return KnowledgeChoice(shipped, f"{shipped.name}: it was measured on {facts.arch}, as this run will be")
