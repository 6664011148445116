"""The knowledge base as markdown, for people."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.knowledge.amend import is_released
from kernelblaster.knowledge.schema import KnowledgeDocument, Lesson, StateEntry, Sums, TechniqueEntry
from kernelblaster.knowledge.statistics import total


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
        "\n".join(_lesson(lesson) for lesson in document.lessons) or "None yet.",
        "## Proposed techniques",
        "\n".join(_proposals(document)) or "None.",
        "## Changes",
        "\n".join(_changes(document)) or "None.",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _statistics(document: KnowledgeDocument) -> Iterable[str]:
    """One table per device kind: what was measured and what was emulated stand apart."""
    cells: dict[str, dict[tuple[str, str, str], list[Sums]]] = defaultdict(lambda: defaultdict(list))
    for row in document.statistics:
        cells[row.cell.device_kind][row.cell.state, row.cell.technique, row.cell.arch].append(row.sums)
    if not cells:
        yield "Nothing has been recorded yet."
    for kind, table in sorted(cells.items()):
        head = [
            f"Device kind: {kind}",
            "",
            "| state | technique | arch | attempts | failed | compared | mean speed-up | best |",
            "|---|---|---|---:|---:|---:|---:|---:|",
        ]
        yield "\n".join(head + [_row(key, total(parts)) for key, parts in sorted(table.items())])


def _row(key: tuple[str, str, str], sums: Sums) -> str:
    mean = f"{math.exp(sums.sum_log / sums.n):.2f}" if sums.n else "-"
    best = f"{math.exp(sums.best):.2f}" if sums.best is not None else "-"
    return f"| {' | '.join(key)} | {sums.attempts} | {sums.failed} | {sums.n} | {mean} | {best} |"


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


def _lesson(lesson: Lesson) -> str:
    scope = [part for part in (lesson.state, lesson.technique, lesson.op_family, lesson.precision) if part]
    records = [(kind, *lesson.record(kind)) for kind in DeviceKind]
    told = [f"{kind}: helped {helpful}, harmed {harmful}" for kind, helpful, harmful in records if helpful or harmful]
    return f"- {lesson.text} ({', '.join(scope) or 'anywhere'}; {'; '.join(told) or 'no record'})"


def _proposals(document: KnowledgeDocument) -> Iterable[str]:
    for name, proposal in document.proposals.items():
        standing = "released" if is_released(proposal) else "in quarantine"
        yield f"- `{name}` ({standing}, {len(proposal.successes)} successes): {proposal.technique.summary}"


def _changes(document: KnowledgeDocument) -> Iterable[str]:
    for entry in document.changes:
        when = entry.applied_at.date().isoformat()
        yield f"- {when} {entry.change.kind} by {entry.provenance.model}: {entry.change.reason}"
