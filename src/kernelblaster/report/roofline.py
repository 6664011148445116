"""The instruction roofline: warp instructions per second over warp instructions per byte of DRAM traffic.

Ceilings are the rate at which the schedulers can issue, and the bandwidth of DRAM times the intensity. Profiles of
either device hold both axes; operations of the algorithm are counted by neither. (The plot is that of N. Ding and
S. Williams, "An Instruction Roofline Model for GPUs", 2019.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelblaster.agent.outcome import RECALLED
from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.devices.metrics import Metric
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.report.reading import ProblemRecord
from kernelblaster.report.scales import LogScale, Tick, around, microseconds, short

WIDTH, HEIGHT = 640.0, 400.0
LEFT, RIGHT, TOP, BOTTOM = 86.0, 16.0, 22.0, 52.0
SCHEDULERS_PER_SM = 4
"""Each issues one warp instruction per cycle; so it is from Maxwell to Blackwell."""


@dataclass(frozen=True)
class Point:
    """A kernel: where it lies, which it is, and what is told of it."""

    x: float
    y: float
    kind: str
    """`start`, `final` or `candidate`."""
    label: str
    title: str


@dataclass(frozen=True)
class Roofline:
    """The figure, in pixels."""

    points: tuple[Point, ...]
    roof: str
    """Path of the ceilings."""
    ridge: tuple[float, float]
    issue_label: str
    memory_label: str
    memory_at: tuple[float, float, float]
    """Place and angle of the label of the memory ceiling."""
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    move: str
    """Path from start to final kernel; empty where one of them is missing."""
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    top: float = TOP
    bottom: float = HEIGHT - BOTTOM


@dataclass(frozen=True)
class Load:
    """What a kernel's call asks of the GPU.

    Attributes:
        intensity: warp instructions per byte to or from DRAM.
        rate: warp instructions per second.
    """

    intensity: float
    rate: float


def load_of(evaluation: Evaluation) -> Load | None:
    """The place of a kernel; None when a counter is missing or zero."""
    if evaluation.profile is None:
        return None
    totals = evaluation.profile.totals
    needed = (Metric.INSTRUCTIONS, Metric.DRAM_READ, Metric.DRAM_WRITE, Metric.DURATION)
    if any(metric not in totals for metric in needed):
        return None
    instructions, read, written, nanoseconds = (totals[metric] for metric in needed)
    if min(instructions, read + written, nanoseconds) <= 0:
        return None
    return Load(intensity=instructions / (read + written), rate=1e9 * instructions / nanoseconds)


def roofline(record: ProblemRecord, facts: DeviceFacts) -> Roofline | None:
    """The plot of a problem's kernels; None when none has the counters for it."""
    loads = {sha256: load for sha256, found in record.evaluations.items() if (load := load_of(found)) is not None}
    if not loads:
        return None
    issue = facts.sm_count * SCHEDULERS_PER_SM * facts.clock_mhz * 1e6
    ridge = issue / facts.peak_bandwidth
    x = LogScale(*around([*(load.intensity for load in loads.values()), ridge], 2.2), LEFT, WIDTH - RIGHT)
    y = LogScale(*around([*(load.rate for load in loads.values()), issue], 1.5), HEIGHT - BOTTOM, TOP)
    places = {sha256: (x(load.intensity), y(load.rate)) for sha256, load in loads.items()}
    kinds = {record.start: "start", record.final: "final"}
    # Start and final kernel are drawn last, on top.
    ordered = sorted(places, key=lambda sha256: (sha256 in kinds, sha256))
    points = [
        Point(
            *places[sha256], kinds.get(sha256, "candidate"), _time(record.evaluations[sha256]), _title(record, sha256)
        )
        for sha256 in ordered
    ]
    low = x.low * facts.peak_bandwidth
    begin = (LEFT, y(low)) if low >= y.low else (x(y.low / facts.peak_bandwidth), HEIGHT - BOTTOM)
    corner = (x(ridge), y(issue))
    start, final = places.get(record.start or ""), places.get(record.final or "")
    return Roofline(
        points=tuple(points),
        roof=f"M{begin[0]:g} {begin[1]:g}L{corner[0]:g} {corner[1]:g}H{WIDTH - RIGHT:g}",
        ridge=corner,
        issue_label=f"issue slots: {short(issue)}inst/s",
        memory_label=f"DRAM: {short(facts.peak_bandwidth)}B/s",
        memory_at=_middle(begin, corner),
        x_ticks=tuple(x.ticks()),
        y_ticks=tuple(y.ticks()),
        move=f"M{start[0]:g} {start[1]:g}L{final[0]:g} {final[1]:g}" if start and final and start != final else "",
    )


def _middle(begin: tuple[float, float], end: tuple[float, float]) -> tuple[float, float, float]:
    (x0, y0), (x1, y1) = begin, end
    return (x0 + x1) / 2, (y0 + y1) / 2 - 6, round(math.degrees(math.atan2(y1 - y0, x1 - x0)), 1)


def _time(evaluation: Evaluation) -> str:
    return f"{microseconds(evaluation.timing.median_us)} µs" if evaluation.timing else ""


def _title(record: ProblemRecord, sha256: str) -> str:
    evaluation = record.evaluations[sha256]
    techniques = [step.technique_told for step in record.steps if step.candidate == sha256]
    recalled = record.recalled is not None and record.recalled.candidate == sha256
    names = ", ".join(dict.fromkeys(techniques)) or (RECALLED if recalled else "start")
    how = "modelled" if evaluation.timing and evaluation.timing.modelled else "measured"
    return f"{names}\n{_time(evaluation)} {how}"
