"""The page of trainings: curves of their stages and the best kernels, one file without anything from elsewhere."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.agent.rendering import templates
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.results import Verdict
from kernelblaster.storage.atomic import write_atomically
from kernelblaster.storage.records import differing_fields
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.metrics import Metrics, by_step, metrics_of, speedup
from kernelblaster.training.rollouts import ROLLOUTS, Rollout, RolloutHeader, read_header, read_rollouts
from kernelblaster.training.stage_records import read_record
from kernelblaster.training.stages import Stage

WIDTH, HEIGHT = 480, 120
COLOURS = ("#06c", "#c40", "#080", "#808", "#a60", "#088", "#c08", "#555")
"""One per training; from the ninth on they come again."""
_CURVES: Mapping[str, Callable[[Metrics], float | None]] = {
    "mean reward": lambda found: found.reward,
    "share correct": lambda found: found.correct_rate,
    "share of dialogues solved": lambda found: found.solved_rate if found.dialogues < found.completions else None,
    "share faster": lambda found: found.fast.get("1"),
    "share of hacks": lambda found: found.hack_rate,
    "share of informative groups": lambda found: found.informative_groups,
    "share cut off": lambda found: found.truncated_rate,
}
_KERNELS = 3


@dataclass(frozen=True)
class Curve:
    """A figure by step: points of an SVG polyline for each training, with the range of all values.

    Attributes:
        low, high: values at the lower and the upper edge.
        last: value of each training at its last step.
    """

    name: str
    lines: tuple[str, ...]
    low: float
    high: float
    last: tuple[float, ...]


@dataclass(frozen=True)
class PhaseView:
    """What a phase took in all trainings: seconds of one time and in all, most GPU memory."""

    name: str
    times: int
    median_s: float
    total_s: float
    peak_gib: float | None


@dataclass(frozen=True)
class StageView:
    """A stage's part of the page; totals are of all trainings together."""

    name: str
    header: RolloutHeader
    trainings: int
    totals: Metrics
    curves: tuple[Curve, ...]
    best: tuple[Rollout, ...]
    phases: tuple[PhaseView, ...]


def write_page(layouts: Sequence[TrainingLayout], path: Path) -> bool:
    """Write curves and kernels of one training, or of several that differ in their seed; False where none has any.

    Raises UsageError where rewards of a stage rest on different things, OSError.
    """
    views = [view for stage in Stage if (view := _view([one.stage(stage) for one in layouts], stage)) is not None]
    if not views:
        return False
    environment = templates(Path(__file__).with_name("templates")).overlay(autoescape=True)
    write_atomically(
        path,
        environment.get_template("training.html.j2").render(stages=views, width=WIDTH, height=HEIGHT, colours=COLOURS),
    )
    return True


def _view(directories: Sequence[Path], stage: Stage) -> StageView | None:
    trainings = [read for directory in directories if (read := read_rollouts(directory))]
    header = _common_header(directories)
    if header is None or not trainings:
        return None
    steps = [by_step(rollouts) for rollouts in trainings]
    found = (
        curve_of(name, [{step: figure(one) for step, one in training.items()} for training in steps])
        for name, figure in _CURVES.items()
    )
    every = [one for rollouts in trainings for one in rollouts]
    return StageView(
        name=stage,
        header=header,
        trainings=len(trainings),
        totals=_totals(trainings),
        curves=tuple(curve for curve in found if curve is not None),
        best=tuple(_best(every)),
        phases=tuple(_phases(directories)),
    )


def _phases(directories: Sequence[Path]) -> Iterator[PhaseView]:
    records = [record for one in directories if (record := read_record(one)) is not None]
    for name in dict.fromkeys(name for record in records for name in record.phases):
        costs = [record.phases[name] for record in records if name in record.phases]
        seconds = [one for cost in costs for one in cost.seconds]
        if seconds:
            peak = max((cost.peak_gib for cost in costs if cost.peak_gib is not None), default=None)
            yield PhaseView(name, len(seconds), statistics.median(seconds), math.fsum(seconds), peak)


def _totals(trainings: Sequence[Sequence[Rollout]]) -> Metrics:
    """Figures of all completions; groups of different trainings stay apart."""
    most = 1 + max(one.step for rollouts in trainings for one in rollouts)
    return metrics_of(
        one.model_copy(update={"step": one.step + place * most})
        for place, rollouts in enumerate(trainings)
        for one in rollouts
    )


def _common_header(directories: Sequence[Path]) -> RolloutHeader | None:
    """What rewards of a stage rest on in all trainings. Raises UsageError where that differs."""
    headers = [found for one in directories if (found := read_header(one / ROLLOUTS)) is not None]
    other = next((one for one in headers if one != headers[0]), None)
    if other is not None:
        raise UsageError(
            f"rewards of stage {headers[0].stage} rest on different things: {differing_fields(headers[0], other)}",
            hint="put only trainings on a page that differ in their seed",
        )
    return headers[0] if headers else None


def curve_of(name: str, trainings: Sequence[Mapping[int, float | None]]) -> Curve | None:
    """A curve of what is known, step -> value, with a line per training; None where nothing is."""
    known = [
        found
        for values in trainings
        if (found := sorted((step, value) for step, value in values.items() if value is not None))
    ]
    if not known:
        return None
    ordinates = [value for line in known for _, value in line]
    low, high = min(0.0, *ordinates), max(1.0, *ordinates)
    span = max(step for line in known for step, _ in line) or 1
    lines = tuple(
        " ".join(f"{WIDTH * step / span:.1f},{HEIGHT * (1 - (value - low) / (high - low)):.1f}" for step, value in line)
        for line in known
    )
    return Curve(name, lines, low, high, tuple(line[-1][1] for line in known))


def _best(rollouts: Sequence[Rollout]) -> list[Rollout]:
    """The fastest correct kernels, one per content."""
    correct = [one for one in rollouts if one.verdict == Verdict.CORRECT and not one.suspicious]
    once = {one.source_sha256: one for one in sorted(correct, key=speedup)}
    return sorted(once.values(), key=speedup, reverse=True)[:_KERNELS]
