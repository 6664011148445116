"""Draws kernels beside PyTorch as SVG: one line per problem, how many times as long PyTorch takes.

Called by `forty/forty.py table`; every mark is a measured time over another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

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


@dataclass(frozen=True)
class Beside:
    """A problem's kernel and PyTorch, in microseconds; None where a mode was not timed.

    Attributes:
        name: `level1/023 Softmax`.
        compiled_us: of the fastest mode of torch.compile.
        settled: whether fresh processes have timed the kernel again; one that was not is drawn hollow.
    """

    name: str
    ours_us: float
    eager_us: float | None
    compiled_us: float | None
    settled: bool = True

    @property
    def ratios(self) -> list[float]:
        """PyTorch's times over the kernel's, of those that there are."""
        return [us / self.ours_us for us in (self.eager_us, self.compiled_us) if us is not None]


LIGHT = Colours("#1f2328", "#d1d9e0", "#1f2328", "#8250df", "#0969da")
DARK = Colours("#e6edf3", "#3d444d", "#e6edf3", "#bc8cff", "#58a6ff")


def picture(problems: Sequence[Beside], colours: Colours) -> str:
    """The drawing. Problems without PyTorch are left out; ValueError where none is left."""
    shown = sorted((one for one in problems if one.ratios), key=lambda one: -min(one.ratios))
    if not shown:
        raise ValueError("no problem has both a kernel and PyTorch")
    every = [ratio for one in shown for ratio in one.ratios]
    low, high = math.log2(min(0.5, *every)), math.log2(max(2.0, *every))

    def x(ratio: float) -> float:
        return LEFT + WIDTH * (math.log2(ratio) - low) / (high - low)

    end = TOP + ROW * len(shown)
    parts = [_text(LEFT, 16, "PyTorch's time / our kernel's time", colours.text, weight="bold")]
    parts += [_dot(LEFT, 31, colours.eager), _text(LEFT + 8, 35, "eager", colours.text)]
    parts += [_dot(LEFT + 60, 31, colours.compiled), _text(LEFT + 68, 35, "torch.compile, fastest mode", colours.text)]
    parts.append(_text(LEFT + WIDTH + 12, 35, "us: ours, PyTorch's best", colours.text))
    if not all(one.settled for one in shown):
        parts += [_dot(LEFT + 240, 31, colours.compiled, filled=False)]
        parts += [_text(LEFT + 248, 35, "timed once so far", colours.text)]
    for tick in TICKS:
        if low <= math.log2(tick) <= high:
            parts.append(_line(x(tick), TOP, x(tick), end, colours.ours if tick == 1 else colours.faint))
            parts.append(_text(x(tick), end + 16, f"{tick:g}x", colours.text, anchor="middle"))
    for at, one in enumerate(shown):
        parts += _row(one, TOP + ROW * at + ROW / 2, x, colours)
    size = f'width="{LEFT + WIDTH + RIGHT}" height="{end + BOTTOM}"'
    style = 'font-family="system-ui, sans-serif" font-size="11"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n' + "\n".join(parts) + "\n</svg>\n"


def _row(one: Beside, y: float, x: Callable[[float], float], colours: Colours) -> list[str]:
    least = min(one.ratios)
    parts = [
        _text(LEFT - 10, y + 4, one.name[:36], colours.text, anchor="end"),
        _line(x(1.0), y, x(least), y, colours.faint),
        _text(LEFT + WIDTH + 12, y + 4, f"{one.ours_us:.1f}, {one.ours_us * least:.1f}", colours.text),
    ]
    for us, colour in ((one.eager_us, colours.eager), (one.compiled_us, colours.compiled)):
        if us is not None:
            parts.append(_dot(x(us / one.ours_us), y, colour, filled=one.settled))
    return parts


def _text(x: float, y: float, text: str, colour: str, *, anchor: str = "start", weight: str = "normal") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}"'
    return f'<text {place} fill="{colour}">{escape(text)}</text>'


def _dot(x: float, y: float, colour: str, *, filled: bool = True) -> str:
    inside = colour if filled else "none"
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{inside}" stroke="{colour}"/>'


def _line(x: float, y: float, to_x: float, to_y: float, colour: str) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}"/>'
