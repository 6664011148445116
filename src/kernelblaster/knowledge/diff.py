"""What two knowledge bases know differently: entries that only one has, and evidence that grew."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from pydantic import BaseModel

from kernelblaster.knowledge.schema import KnowledgeDocument


class NameDiff(BaseModel):
    """Names that only one of two documents has, and those whose entries differ."""

    added: list[str]
    removed: list[str]
    changed: list[str]


class EvidenceDiff(BaseModel):
    """Attempts of one technique in one state, on one architecture and kind of device."""

    state: str
    technique: str
    arch: str
    device_kind: str
    before: int
    after: int


class KnowledgeDiff(BaseModel):
    """The second document against the first."""

    format: str = "kernelblaster-knowledge-diff-1"
    states: NameDiff
    techniques: NameDiff
    lessons: NameDiff
    proposals: NameDiff
    changes: NameDiff
    """Entries of the change log, by id."""
    evidence: list[EvidenceDiff]
    """Where the number of attempts differs."""

    @property
    def empty(self) -> bool:
        """Whether both know the same."""
        parts = (self.states, self.techniques, self.lessons, self.proposals, self.changes)
        return not self.evidence and not any(part.added or part.removed or part.changed for part in parts)


def diff(before: KnowledgeDocument, after: KnowledgeDocument) -> KnowledgeDiff:
    """What `after` knows beyond `before`, lacks, or says differently."""
    return KnowledgeDiff(
        states=_names(before.states, after.states),
        techniques=_names(before.techniques, after.techniques),
        lessons=_names({it.id: it for it in before.lessons}, {it.id: it for it in after.lessons}),
        proposals=_names(before.proposals, after.proposals),
        changes=_names({it.id: it for it in before.changes}, {it.id: it for it in after.changes}),
        evidence=_evidence(before, after),
    )


def _names(before: Mapping[str, object], after: Mapping[str, object]) -> NameDiff:
    return NameDiff(
        added=sorted(after.keys() - before.keys()),
        removed=sorted(before.keys() - after.keys()),
        changed=sorted(name for name in before.keys() & after.keys() if before[name] != after[name]),
    )


def _evidence(before: KnowledgeDocument, after: KnowledgeDocument) -> list[EvidenceDiff]:
    first, second = _attempts(before), _attempts(after)
    return [
        EvidenceDiff(
            state=key[0], technique=key[1], arch=key[2], device_kind=key[3], before=first[key], after=second[key]
        )
        for key in sorted({*first, *second})
        if first[key] != second[key]
    ]


def _attempts(document: KnowledgeDocument) -> defaultdict[tuple[str, str, str, str], int]:
    attempts: defaultdict[tuple[str, str, str, str], int] = defaultdict(int)
    for row in document.statistics:
        cell = row.cell
        attempts[cell.state, cell.technique, cell.arch, str(cell.device_kind)] += row.sums.attempts
    return attempts
