"""Which knowledge base a run begins with. Apart from `choices`, which commands that read none import, too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernelblaster.config import RunConfig
from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.knowledge.schema import KnowledgeDocument
from kernelblaster.knowledge.store import KnowledgeStore, seed_path
from kernelblaster.records.layout import RunLayout


@dataclass(frozen=True)
class KnowledgeChoice:
    """What an experiment knows at its beginning, and why."""

    start: Path
    reason: str


def choose_knowledge(config: RunConfig, layout: RunLayout, facts: DeviceFacts) -> KnowledgeChoice:
    """The experiment's own knowledge base, else the one that is asked for, else the shipped one."""
    own, given = layout.knowledge_base, config.knowledge_base
    if own.exists():
        merged = f", with {given} merged in" if given is not None else ""
        return KnowledgeChoice(own, f"{own.name} of this experiment{merged}")
    if given is not None:
        return KnowledgeChoice(given, f"{given}: asked for")
    shipped = seed_path()
    measured = measured_on(KnowledgeStore(shipped, owned=False).load().document, facts.arch, facts.kind)
    told = (
        f"{measured} attempts were measured on {facts.arch}"
        if measured
        else "nothing was measured on this device before"
    )
    return KnowledgeChoice(shipped, f"{shipped.name}, the shipped one: {told}")


def measured_on(document: KnowledgeDocument, arch: str, kind: DeviceKind) -> int:
    """Attempts that statistics hold of an architecture and a kind of device."""
    own = (row for row in document.statistics if (row.cell.arch, row.cell.device_kind) == (arch, kind))
    return sum(row.sums.attempts for row in own)
