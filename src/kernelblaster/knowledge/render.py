"""The knowledge base as markdown, for people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.knowledge.amend import is_released
from kernelblaster.knowledge.pair_evidence import holds
from kernelblaster.knowledge.schema import ChangeEntry, KnowledgeDocument, Lesson, StateEntry, TechniqueEntry
from kernelblaster.knowledge.track_record import RecordKey, TrackRecord, track_records


def render(document: KnowledgeDocument) -> str:
    """States with their techniques, measured statistics, lessons, proposals and changes."""
    sections = [
        "# Optimization knowledge base",
        document.about,
        "## Statistics",
        *_statistics(document),
        "## States",
        *(line for name, state in document.states.items() for line in _state(name, state)),
        "## Techniques",
        *(line for name, technique in document.techniques.items() for line in _technique(name, technique)),
        "## Lessons",
        "\n".join(lesson_line(lesson) for lesson in document.lessons) or "None yet.",
        "## Proposed techniques",
        "\n".join(_proposals(document)) or "None.",
        "## Changes",
        "\n".join(_changes(document)) or "None.",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _statistics(document: KnowledgeDocument) -> Iterable[str]:
    """One table per device kind: what was measured and what was emulated stand apart."""
    tables: dict[str, list[str]] = defaultdict(list)
    for key, record in track_records(document).items():
        tables[key.device_kind].append(_row(key, record))
    if not tables:
        yield "Nothing has been recorded yet."
    for kind, rows in sorted(tables.items()):
        head = [
            f"Device kind: {kind}",
            "",
            "| state | technique | arch | attempts | correct | compared | mean gain | 95 % interval | best | credit |",
            "|---|---|---|---:|---:|---:|---:|---:|---:|---:|",
        ]
        yield "\n".join(head + rows)


def _row(key: RecordKey, record: TrackRecord) -> str:
    arch = f"{key.arch} (weakly verified)" if key.weakly_verified else key.arch
    mean = f"{record.mean:.2f}" if record.mean is not None else "-"
    interval = f"{record.low:.2f} to {record.high:.2f}" if record.low is not None else "-"
    best = f"{record.best:.2f}" if record.best is not None else "-"
    credit = f"{record.credit:.2f}" if record.credit is not None else "-"
    counts = f"{record.attempts} | {record.correct} | {record.compared}"
    return f"| {key.state} | {key.technique} | {arch} | {counts} | {mean} | {interval} | {best} | {credit} |"


def _state(name: str, state: StateEntry) -> Iterable[str]:
    yield f"### {name} ({state.group})"
    yield state.primary_bottleneck
    if state.secondary_characteristics:
        yield "\n".join(f"- {text}" for text in state.secondary_characteristics)
    if state.rules:
        yield "\n".join(f"- Rule `{rule.id}` ({rule.confidence:g}): {rule.because}" for rule in state.rules)
    yield f"Techniques: {', '.join(f'`{technique}`' for technique in state.techniques)}"


def _technique(name: str, technique: TechniqueEntry) -> Iterable[str]:
    yield f"### {name}"
    yield technique.summary
    if technique.how_to:
        yield "\n".join(f"{number}. {line}" for number, line in enumerate(technique.how_to, 1))
    if technique.checks:
        yield "\n".join(f"- Check: {line}" for line in technique.checks)


def lesson_line(lesson: Lesson) -> str:
    """A lesson with its scope and its record, as an item of a list."""
    scope = [part for part in (lesson.state, lesson.technique, lesson.op_family, lesson.precision) if part]
    records = [(kind, *lesson.record(kind)) for kind in DeviceKind]
    told = [f"{kind}: helped {helpful}, harmed {harmful}" for kind, helpful, harmful in records if helpful or harmful]
    told += [f"{kind}: {_pairs(lesson, kind)}" for kind in DeviceKind if _pairs(lesson, kind)]
    return f"- {lesson.text} ({', '.join(scope) or 'anywhere'}; {'; '.join(told) or 'no record'})"


def _pairs(lesson: Lesson, kind: DeviceKind) -> str:
    """What measured pairs say of a lesson on a kind of device; empty where there are none."""
    ours = [pair for pair in lesson.pairs if pair.device_kind is kind]
    against = sum(pair.contradicts for pair in ours)
    dropped = "" if holds(lesson, kind) else ", no longer shown"
    return f"{len(ours) - against} pairs for, {against} against{dropped}" if ours else ""


def _proposals(document: KnowledgeDocument) -> Iterable[str]:
    for name, proposal in document.proposals.items():
        standing = "released" if is_released(proposal) else "in quarantine"
        yield f"- `{name}` ({standing}, {len(proposal.successes)} successes): {proposal.technique.summary}"


def _changes(document: KnowledgeDocument) -> Iterable[str]:
    yield from map(change_line, document.changes)


def change_line(entry: ChangeEntry) -> str:
    """A change with its reason, as an item of a list."""
    when = entry.applied_at.date().isoformat()
    return f"- {when} {entry.change.kind} by {entry.provenance.model}: {entry.change.reason}"
