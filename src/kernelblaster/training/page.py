"""The page of a training: curves of its stages and the best kernels, one file without anything from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.agent.rendering import templates
from kernelblaster.evaluation.results import Verdict
from kernelblaster.storage.atomic import write_atomically
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.metrics import Metrics, by_step, metrics_of, speedup
from kernelblaster.training.rollouts import ROLLOUTS, Rollout, RolloutHeader, read_header, read_rollouts
from kernelblaster.training.stages import Stage

WIDTH, HEIGHT = 480, 120
_CURVES: Mapping[str, Callable[[Metrics], float | None]] = {
    "mean reward": lambda found: found.reward,
    "share correct": lambda found: found.correct_rate,
    "share faster": lambda found: found.fast.get("1"),
    "share of hacks": lambda found: found.hack_rate,
    "share of informative groups": lambda found: found.informative_groups,
    "share cut off": lambda found: found.truncated_rate,
}
_KERNELS = 3


@dataclass(frozen=True)
class Curve:
    """A figure by step: points of an SVG polyline, with the range of its values."""

    name: str
    points: str
    low: float
    high: float
    last: float


@dataclass(frozen=True)
class StageView:
    """A stage's part of the page."""

    name: str
    header: RolloutHeader
    totals: Metrics
    curves: tuple[Curve, ...]
    best: tuple[Rollout, ...]


def write_page(layout: TrainingLayout) -> Path | None:
    """Write `report.html`; None where no stage has judged anything. Raises UsageError, OSError."""
    views = [view for stage in Stage if (view := _view(layout.stage(stage), stage)) is not None]
    if not views:
        return None
    environment = templates(Path(__file__).with_name("templates")).overlay(autoescape=True)
    write_atomically(
        layout.page, environment.get_template("training.html.j2").render(stages=views, width=WIDTH, height=HEIGHT)
    )
    return layout.page


def _view(directory: Path, stage: Stage) -> StageView | None:
    header = read_header(directory / ROLLOUTS)
    rollouts = read_rollouts(directory) if header is not None else []
    if header is None or not rollouts:
        return None
    steps = by_step(rollouts)
    found = (curve_of(name, {step: figure(one) for step, one in steps.items()}) for name, figure in _CURVES.items())
    return StageView(
        name=stage,
        header=header,
        totals=metrics_of(rollouts),
        curves=tuple(curve for curve in found if curve is not None),
        best=tuple(_best(rollouts)),
    )


def curve_of(name: str, values: Mapping[int, float | None]) -> Curve | None:
    """A curve of what is known; None where nothing is."""
    known = sorted((step, value) for step, value in values.items() if value is not None)
    if not known:
        return None
    ordinates = [value for _, value in known]
    low, high = min(0.0, *ordinates), max(1.0, *ordinates)
    span = max(step for step, _ in known) or 1
    points = " ".join(
        f"{WIDTH * step / span:.1f},{HEIGHT * (1 - (value - low) / (high - low)):.1f}" for step, value in known
    )
    return Curve(name, points, low, high, known[-1][1])


def _best(rollouts: Sequence[Rollout]) -> list[Rollout]:
    """The fastest correct kernels, one per content."""
    correct = [one for one in rollouts if one.verdict == Verdict.CORRECT and not one.suspicious]
    once = {one.source_sha256: one for one in sorted(correct, key=speedup)}
    return sorted(once.values(), key=speedup, reverse=True)[:_KERNELS]
