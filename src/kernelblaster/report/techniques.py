"""What each technique brought, over all problems of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelblaster.evaluation.results import Verdict
from kernelblaster.report.reading import ProblemRecord
from kernelblaster.report.scales import LogScale, Tick, around, times
from kernelblaster.report.search_tree import StepEnding, outcome_of, step_anchor

WIDTH, LANE, MARGIN = 360.0, 26.0, 14.0


@dataclass(frozen=True)
class Trial:
    """One candidate that was timed against its parent."""

    x: float
    outcome: StepEnding
    title: str
    anchor: str


@dataclass(frozen=True)
class TechniqueRow:
    """A technique: how often it was tried, how often it was right and faster, and every speed-up it had."""

    name: str
    states: str
    """Bottlenecks it was chosen for."""
    tried: int
    correct: int
    accepted: int
    best: str
    trials: tuple[Trial, ...]


@dataclass(frozen=True)
class TechniqueTable:
    """All techniques, the best first."""

    rows: tuple[TechniqueRow, ...]
    ticks: tuple[Tick, ...]
    one: float
    """Where a speed-up of 1 lies."""
    width: float = WIDTH


@dataclass(frozen=True)
class _Tried:
    state: str
    verdict: str
    speedup: float | None
    accepted: bool
    outcome: StepEnding
    title: str
    anchor: str


def technique_table(records: Sequence[ProblemRecord]) -> TechniqueTable | None:
    """The table; None when nothing was decided."""
    tried: dict[str, list[_Tried]] = {}
    for record in records:
        for technique, one in _tried(record):
            tried.setdefault(technique, []).append(one)
    if not tried:
        return None
    speedups = [one.speedup for all_of in tried.values() for one in all_of if one.speedup]
    low, high = around([*speedups, 1.0], 1.25)
    scale = LogScale(low, high, MARGIN, WIDTH - MARGIN)
    rows = sorted(tried.items(), key=lambda item: -max((one.speedup or 0.0) for one in item[1]))
    return TechniqueTable(
        rows=tuple(_row(name, all_of, scale) for name, all_of in rows),
        ticks=tuple(scale.ticks(5, "×")),  # noqa: RUF001
        one=scale(1.0),
    )


def _tried(record: ProblemRecord) -> list[tuple[str, _Tried]]:
    found = []
    for step in record.steps:
        judged = step.last.evaluated if step.last else None
        if step.decided is None:
            continue
        outcome = outcome_of(step)
        told = f"{times(judged.speedup)} {judged.decision}" if judged and judged.speedup else outcome
        one = _Tried(
            state=step.selected.state if step.selected else "",
            verdict=judged.verdict if judged else "",
            speedup=judged.speedup if judged else None,
            accepted=step.decided.accepted,
            outcome=outcome,
            title=f"{record.row.problem} {step.rollout} step {step.number}: {told}",
            anchor=step_anchor(record.anchor, step),
        )
        # What was done, as far as detectors confirm it; journals of earlier versions hold what was asked for alone.
        found.append((step.credited.credited if step.credited else step.decided.technique, one))
    return found


def _row(name: str, tried: list[_Tried], scale: LogScale) -> TechniqueRow:
    speedups = [one.speedup for one in tried if one.speedup]
    return TechniqueRow(
        name=name,
        states=", ".join(dict.fromkeys(one.state for one in tried if one.state)),
        tried=len(tried),
        correct=sum(one.verdict == Verdict.CORRECT for one in tried),
        accepted=sum(one.accepted for one in tried),
        best=times(max(speedups)) if speedups else "",
        trials=tuple(Trial(scale(one.speedup), one.outcome, one.title, one.anchor) for one in tried if one.speedup),
    )
