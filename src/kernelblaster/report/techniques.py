"""What each technique brought where it was done, over all problems of the page, and how often it was asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kernelblaster.agent.events import Decided
from kernelblaster.evaluation.results import Verdict
from kernelblaster.report.reading import ProblemRecord, ReportedStep
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
    """A technique: how often it was asked for and done, how often right and faster, and every speed-up it had."""

    name: str
    states: str
    """Bottlenecks of the kernels that it was done on."""
    asked: int
    done: int
    """How often, whatever was asked for; all that follows is of these."""
    correct: int
    accepted: int
    best: str
    trials: tuple[Trial, ...]


@dataclass(frozen=True)
class TechniqueTable:
    """All techniques, the best first."""

    rows: tuple[TechniqueRow, ...]
    undone: tuple[tuple[str, int], ...]
    """Techniques that were asked for and never done, and how often."""
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
    done: dict[str, list[_Tried]] = {}
    asked: Counter[str] = Counter()
    for record in records:
        for step in record.steps:
            if step.decided is not None:
                asked[step.decided.technique] += 1
                done.setdefault(step.technique, []).append(_tried(record, step, step.decided))
    if not done:
        return None
    speedups = [one.speedup for all_of in done.values() for one in all_of if one.speedup]
    low, high = around([*speedups, 1.0], 1.25)
    scale = LogScale(low, high, MARGIN, WIDTH - MARGIN)
    rows = sorted(done.items(), key=lambda item: -max((one.speedup or 0.0) for one in item[1]))
    return TechniqueTable(
        rows=tuple(_row(name, asked[name], all_of, scale) for name, all_of in rows),
        undone=tuple((name, count) for name, count in asked.most_common() if name not in done),
        ticks=tuple(scale.ticks(5, "×")),  # noqa: RUF001
        one=scale(1.0),
    )


def _tried(record: ProblemRecord, step: ReportedStep, decided: Decided) -> _Tried:
    judged = step.last.evaluated if step.last else None
    outcome = outcome_of(step)
    told = f"{times(judged.speedup)} {judged.decision}" if judged and judged.speedup else outcome
    return _Tried(
        state=step.selected.state if step.selected else "",
        verdict=judged.verdict if judged else "",
        speedup=judged.speedup if judged else None,
        accepted=decided.accepted,
        outcome=outcome,
        title=f"{record.row.problem} {step.rollout} step {step.number}: {told}\n{step.technique_told}",
        anchor=step_anchor(record.anchor, step),
    )


def _row(name: str, asked: int, done: list[_Tried], scale: LogScale) -> TechniqueRow:
    speedups = [one.speedup for one in done if one.speedup]
    return TechniqueRow(
        name=name,
        states=", ".join(dict.fromkeys(one.state for one in done if one.state)),
        asked=asked,
        done=len(done),
        correct=sum(one.verdict == Verdict.CORRECT for one in done),
        accepted=sum(one.accepted for one in done),
        best=times(max(speedups)) if speedups else "",
        trials=tuple(Trial(scale(one.speedup), one.outcome, one.title, one.anchor) for one in done if one.speedup),
    )
