"""Draws final kernels beside PyTorch as SVG: one line per problem, how many times as long PyTorch takes.

Called by `h200_table.py --write`; every mark is a row's figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from xml.sax.saxutils import escape

from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.records.baselines import BaselineRow
from kernelblaster.runs.pytorch_baseline import FINAL

ROW, TOP, BOTTOM, LEFT, WIDTH, RIGHT = 18, 44, 30, 250, 420, 170
"""Pixels."""
TICKS = (0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True)
class Colours:
    """Of one theme."""

    text: str
    faint: str
    ours: str
    eager: str
    compiled: str


LIGHT = Colours("#1f2328", "#d1d9e0", "#1f2328", "#8250df", "#0969da")
DARK = Colours("#e6edf3", "#3d444d", "#e6edf3", "#bc8cff", "#58a6ff")


def picture(rows: list[BaselineRow], colours: Colours) -> str:
    """The drawing. Rows without a final kernel or without PyTorch are left out; ValueError where none is left."""
    shown = [(row, *ratios) for row in rows if (ratios := _ratios(row)) is not None]
    if not shown:
        raise ValueError("no row has both a final kernel and PyTorch")
    shown.sort(key=lambda one: -min(ratio for ratio in one[1:] if ratio is not None))
    every = [ratio for one in shown for ratio in one[1:] if ratio is not None]
    low, high = math.log2(min(0.5, *every)), math.log2(max(2.0, *every))

    def x(ratio: float) -> float:
        return LEFT + WIDTH * (math.log2(ratio) - low) / (high - low)

    end = TOP + ROW * len(shown)
    parts = [_text(LEFT, 16, "PyTorch's time / final kernel's time", colours.text, weight="bold")]
    parts += [_dot(LEFT, 31, colours.eager), _text(LEFT + 8, 35, "eager", colours.text)]
    parts += [_dot(LEFT + 60, 31, colours.compiled), _text(LEFT + 68, 35, "torch.compile, fastest mode", colours.text)]
    parts.append(_text(LEFT + WIDTH + 12, 35, "us: ours, PyTorch's best", colours.text))
    for tick in TICKS:
        if low <= math.log2(tick) <= high:
            parts.append(_line(x(tick), TOP, x(tick), end, colours.ours if tick == 1 else colours.faint))
            parts.append(_text(x(tick), end + 16, f"{tick:g}x", colours.text, anchor="middle"))
    for at, (row, eager, compiled) in enumerate(shown):
        parts += _row(row, eager, compiled, TOP + ROW * at + ROW / 2, x, colours)
    size = f'width="{LEFT + WIDTH + RIGHT}" height="{end + BOTTOM}"'
    style = 'font-family="system-ui, sans-serif" font-size="11"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n' + "\n".join(parts) + "\n</svg>\n"


def _ratios(row: BaselineRow) -> tuple[float | None, float | None] | None:
    """Eager and the fastest mode of torch.compile over the final kernel."""
    final = row.timings.get(FINAL)
    times = {mode: row.timings[mode].median_us for mode in TorchMode if mode in row.timings}
    if final is None or not times:
        return None
    ratios = {mode: us / final.median_us for mode, us in times.items()}
    eager = ratios.pop(TorchMode.EAGER, None)
    return eager, min(ratios.values(), default=None)


def _row(
    row: BaselineRow,
    eager: float | None,
    compiled: float | None,
    y: float,
    x: Callable[[float], float],
    colours: Colours,
) -> list[str]:
    final = row.timings[FINAL].median_us
    found = [ratio for ratio in (eager, compiled) if ratio is not None]
    parts = [
        _text(LEFT - 10, y + 4, f"{row.problem} {row.name}"[:38], colours.text, anchor="end"),
        _line(x(1.0), y, x(min(found)), y, colours.faint),
        _text(LEFT + WIDTH + 12, y + 4, f"{final:.1f}, {final * min(found):.1f}", colours.text),
    ]
    if eager is not None:
        parts.append(_dot(x(eager), y, colours.eager))
    if compiled is not None:
        parts.append(_dot(x(compiled), y, colours.compiled))
    return parts


def _text(x: float, y: float, text: str, colour: str, *, anchor: str = "start", weight: str = "normal") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}"'
    return f'<text {place} fill="{colour}">{escape(text)}</text>'


def _dot(x: float, y: float, colour: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'


def _line(x: float, y: float, to_x: float, to_y: float, colour: str) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}"/>'
