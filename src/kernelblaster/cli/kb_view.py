"""How knowledge bases and their differences are printed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from kernelblaster import track_records

if TYPE_CHECKING:
    from kernelblaster import KnowledgeBase, KnowledgeDiff, RecordKey, TrackRecord

_COLUMNS_TOLD = (
    "gain: speed-up of a candidate against its parent, geometric mean with 95 % interval; best: the largest",
    "credit: speed-up beyond that of other candidates of the same parent, geometric mean; techniques are chosen by it",
)
_PARTS = ("states", "techniques", "lessons", "proposals", "changes", "cores")


def print_knowledge(console: Console, base: KnowledgeBase) -> None:
    """States with the techniques that were tried in them, by architecture; what has no record is only named."""
    records = track_records(base.document)
    for line in _summary(base, records):
        console.print(line, markup=False, soft_wrap=True)
    if records:
        console.print(_table(records))
        for told in _COLUMNS_TOLD:
            console.print(told, style="dim", soft_wrap=True)
    tried = {key.state for key in records}
    untried = [f"{name} ({len(state.techniques)})" for name, state in base.states.items() if name not in tried]
    if untried:
        console.print(f"nothing recorded yet, techniques to try: {', '.join(untried)}", markup=False, soft_wrap=True)


def print_diff(console: Console, diff: KnowledgeDiff) -> None:
    """What the second knows beyond the first (+), lacks (-), or says differently (~)."""
    for line in _diff_lines(diff):
        console.print(line, markup=False, soft_wrap=True)


def news(diff: KnowledgeDiff) -> str:
    """What was gained, on one line; empty for nothing."""
    attempts = sum(row.after - row.before for row in diff.evidence)
    counted = [(attempts, "attempts"), *((len(getattr(diff, part).added), part) for part in _PARTS)]
    changed = sum(len(getattr(diff, part).changed) for part in _PARTS)
    gained = [f"{count} new {name}" for count, name in counted if count]
    return ", ".join([*gained, *([f"{changed} entries changed"] if changed else [])])


def _summary(base: KnowledgeBase, records: dict[RecordKey, TrackRecord]) -> Iterator[str]:
    yield f"{len(base.states)} states, {len(base.techniques)} techniques, {len(base.document.lessons)} lessons"
    attempts: defaultdict[str, list[TrackRecord]] = defaultdict(list)
    for key, record in records.items():
        attempts[_place(key)].append(record)
    for place, found in sorted(attempts.items()):
        tried, correct = sum(one.attempts for one in found), sum(one.correct for one in found)
        yield f"{place}: {tried} attempts, {correct} correct ({100 * correct / tried:.3g} %)"


def _place(key: RecordKey) -> str:
    kind = "measured" if key.device_kind == "cuda" else "emulated, gains modelled"
    return f"{key.arch}, {kind}{', weakly verified' if key.weakly_verified else ''}"


def _table(records: dict[RecordKey, TrackRecord]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    several = len({_place(key) for key in records}) > 1  # else the line above has said it
    table.add_column("state, technique", no_wrap=True)
    if several:
        table.add_column("on")
    for column in ("tried", "correct", "gain", "95 %", "best", "credit"):
        table.add_column(column, justify="right")
    state = ""
    for key, record in records.items():
        if key.state != state:
            state = key.state
            table.add_row(f"[bold]{state}[/]")
        place = [_place(key)] if several else []
        table.add_row(f"  {key.technique}", *place, str(record.attempts), str(record.correct), *_gains(record))
    return table


def _gains(record: TrackRecord) -> tuple[str, str, str, str]:
    interval = f"{record.low:.2f}-{record.high:.2f}" if record.low is not None else "-"
    return _ratio(record.mean), interval, _ratio(record.best), _ratio(record.credit)


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def _diff_lines(diff: KnowledgeDiff) -> Iterator[str]:
    if diff.empty:
        yield "both know the same"
        return
    for part in _PARTS:
        names = getattr(diff, part)
        for sign, listed in (("+", names.added), ("-", names.removed), ("~", names.changed)):
            for name in listed:
                yield f"{sign} {part.removesuffix('s')} {diff.texts.get(name, name)}"
    for row in diff.evidence:
        sign = "+" if not row.before else "-" if not row.after else "~"
        known = (row.before_mean, row.after_mean) if row.before else (row.after_mean,)
        means = " -> ".join("not known" if mean is None else f"{mean:.2f}x" for mean in known)
        kind = "measured" if row.device_kind == "cuda" else row.device_kind
        yield (
            f"{sign} {row.state}, {row.technique} ({row.arch}, {kind}): "
            f"attempts {row.before} -> {row.after}, mean {means}"
        )
