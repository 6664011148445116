"""What two knowledge bases know differently: entries that only one has, and evidence that grew."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel

from kernelblaster.knowledge.render import change_line, lesson_line
from kernelblaster.knowledge.schema import KnowledgeDocument, Sums
from kernelblaster.knowledge.track_record import record_of, track_records

_NOTHING = record_of(Sums())


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
    before_mean: float | None = None
    """Geometric mean speed-up against the parent; None without a comparison."""
    after_mean: float | None = None
    weakly_verified: bool = False


class KnowledgeDiff(BaseModel):
    """The second document against the first."""

    format: str = "kernelblaster-knowledge-diff-1"
    states: NameDiff
    techniques: NameDiff
    lessons: NameDiff
    proposals: NameDiff
    changes: NameDiff
    """Entries of the change log, by id."""
    cores: NameDiff = NameDiff(added=[], removed=[], changed=[])
    evidence: list[EvidenceDiff]
    """Where the number of attempts or the mean differs."""
    texts: dict[str, str] = {}
    """What lessons, proposals and changes that differ say, by name: as the second has it, or else the first."""

    @property
    def empty(self) -> bool:
        """Whether both know the same."""
        parts = (self.states, self.techniques, self.lessons, self.proposals, self.changes, self.cores)
        return not self.evidence and not any(part.added or part.removed or part.changed for part in parts)


def diff(before: KnowledgeDocument, after: KnowledgeDocument) -> KnowledgeDiff:
    """What `after` knows beyond `before`, lacks, or says differently."""
    lessons = _names({it.id: it for it in before.lessons}, {it.id: it for it in after.lessons})
    proposals = _names(before.proposals, after.proposals)
    changes = _names({it.id: it for it in before.changes}, {it.id: it for it in after.changes})
    named = {name for part in (lessons, proposals, changes) for name in (*part.added, *part.removed, *part.changed)}
    texts = {name: text for name, text in (_texts(before) | _texts(after)).items() if name in named}
    return KnowledgeDiff(
        states=_names(before.states, after.states),
        techniques=_names(before.techniques, after.techniques),
        lessons=lessons,
        proposals=proposals,
        changes=changes,
        cores=_names({it.id: it for it in before.cores}, {it.id: it for it in after.cores}),
        evidence=_evidence(before, after),
        texts=texts,
    )


def _names(before: Mapping[str, object], after: Mapping[str, object]) -> NameDiff:
    return NameDiff(
        added=sorted(after.keys() - before.keys()),
        removed=sorted(before.keys() - after.keys()),
        changed=sorted(name for name in before.keys() & after.keys() if before[name] != after[name]),
    )


def _evidence(before: KnowledgeDocument, after: KnowledgeDocument) -> list[EvidenceDiff]:
    first, second = track_records(before), track_records(after)
    found = []
    for key in sorted({*first, *second}):
        one, other = first.get(key, _NOTHING), second.get(key, _NOTHING)
        if one != other:
            found.append(
                EvidenceDiff(
                    state=key.state,
                    technique=key.technique,
                    arch=key.arch,
                    device_kind=str(key.device_kind),
                    before=one.attempts,
                    after=other.attempts,
                    before_mean=one.mean,
                    after_mean=other.mean,
                    weakly_verified=key.weakly_verified,
                )
            )
    return found


def _texts(document: KnowledgeDocument) -> dict[str, str]:
    """What the document's lessons, proposals and changes say, by name."""
    lines = {lesson.id: lesson_line(lesson) for lesson in document.lessons}
    lines |= {entry.id: change_line(entry) for entry in document.changes}
    lines |= {name: proposal.technique.summary for name, proposal in document.proposals.items()}
    return {name: line.removeprefix("- ") for name, line in lines.items()}
