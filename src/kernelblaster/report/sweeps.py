"""Sweeps over tunables as heat maps: the best time for each pair of values of the two constants that mattered most."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernelblaster.agent.events import Swept
from kernelblaster.agent.files import SweepPoint
from kernelblaster.report.reading import ProblemRecord
from kernelblaster.report.scales import microseconds, times


@dataclass(frozen=True)
class HeatCell:
    """The best variant with two values; `heat` is 100 for the fastest of the map and 0 for the slowest."""

    text: str
    title: str
    heat: int
    best: bool


@dataclass(frozen=True)
class SweepView:
    """One sweep.

    Attributes:
        place: `r1 · 0 · 2`.
        told: how many variants, how long, what it gained.
        across, down: names of the constants; `down` is empty when there is one.
        columns, rows: their values.
    """

    place: str
    told: str
    across: str
    down: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell, ...]], ...]


def sweep_views(record: ProblemRecord) -> tuple[SweepView, ...]:
    """All sweeps of a search that timed at least two variants, by step."""
    return tuple(_views(record))


def _views(record: ProblemRecord) -> Iterator[SweepView]:
    for step in record.steps:
        for attempt in step.attempts:
            swept = attempt.swept
            timed = [point for point in swept.points if point.found.median_us is not None] if swept else []
            if swept is not None and len(timed) > 1:
                yield _view(step.place, swept, timed)


def _view(place: str, swept: Swept, timed: Sequence[SweepPoint]) -> SweepView:
    across, *rest = sorted(timed[0].values, key=lambda name: (-_influence(name, timed), name))
    down = rest[0] if rest else ""
    low = min(_us(point) for point in timed)
    high = max(_us(point) for point in timed)
    columns = _sorted({point.values[across] for point in swept.points})
    rows = []
    for value in _sorted({point.values[down] for point in swept.points}) if down else ("",):
        own = [point for point in swept.points if not down or point.values[down] == value]
        cells = [_cell([point for point in own if point.values[across] == other], low, high) for other in columns]
        rows.append((value, tuple(cells)))
    gain = f", {times(swept.gain)} over the values that were written" if swept.gain else ""
    return SweepView(
        place=place,
        told=f"{len(timed)} of {len(swept.points)} variants timed in {_took(swept, len(timed))}{gain}",
        across=across,
        down=down,
        columns=columns,
        rows=tuple(rows),
    )


def _took(swept: Swept, timed: int) -> str:
    """`17 s, 0.21 s of timing each`; how long timing took is not known of sweeps of earlier versions."""
    timing = swept.stages.get("time")
    return f"{swept.seconds:.0f} s" + (f", {timing / timed:.2f} s of timing each" if timing is not None else "")


def _influence(name: str, timed: Sequence[SweepPoint]) -> float:
    """How far the best times for the values of a constant lie apart, as a ratio."""
    best: dict[str, float] = {}
    for point in timed:
        value = point.values[name]
        best[value] = min(best.get(value, math.inf), _us(point))
    return max(best.values()) / min(best.values())


def _cell(points: Sequence[SweepPoint], low: float, high: float) -> HeatCell:
    timed = [point for point in points if point.found.median_us is not None]
    if not timed:
        reason = next((point.found.reason for point in points), "not tried")
        return HeatCell("", reason[:200], 0, best=False)
    fastest = min(timed, key=_us)
    us = _us(fastest)
    heat = 100 if high <= low else round(100 * math.log(high / us) / math.log(high / low))
    return HeatCell(microseconds(us), ", ".join(f"{k} {v}" for k, v in fastest.values.items()), heat, best=us == low)


def _us(point: SweepPoint) -> float:
    """Of a variant that was timed."""
    if point.found.median_us is None:
        raise ValueError("this variant was not timed")
    return point.found.median_us


def _sorted(values: set[str]) -> tuple[str, ...]:
    """Numbers by size, then words."""
    return tuple(sorted(values, key=lambda value: (0, int(value), "") if value.isdecimal() else (1, 0, value)))
