"""Where the search tree has its dots, edges and figures: in places of their own, so that none lies on another.

A column has a dot in each lane, from left to right: room in which edges change lanes, the figure of the edge that
arrives, the dot. Edges change lanes right behind the dot that they leave; one that passes columns passes above their
dots. Figures of edges lie above the level end of their edge, those of dots below the dot, to its left.
"""

from __future__ import annotations

from dataclasses import dataclass

LANE, LEFT, TOP, BOTTOM = 58.0, 62.0, 36.0, 36.0
ROOT = LEFT + 26
WIDTH = 1120.0
"""Wanted; the tree of a long search is wider, and scrolls."""
NARROWEST, WIDEST = 116.0, 160.0
"""Of a column, one for each step."""
TURN = 42.0
"""Room behind a dot in which edges change lanes."""
FIGURE = 60.0
"""Room before a dot for the figure of its edge."""
PASSAGE = 25.0
"""Of edges that pass columns, above the dots of the lane that they lead to."""

Place = tuple[float, float]


@dataclass(frozen=True)
class Grid:
    """Where steps lie.

    Attributes:
        longest: columns behind that of the roots.
        above: lanes, and columns, before those of rollouts.
    """

    longest: int
    above: int

    @property
    def column(self) -> float:
        """Width."""
        return min(WIDEST, max(NARROWEST, (WIDTH - ROOT - 30) / self.longest))

    def x(self, number: int) -> float:
        """Of the step with this number."""
        return round(ROOT + self.column * (number + self.above), 1)

    def y(self, lane: int) -> float:
        """Of a rollout, counted from 0."""
        return TOP + LANE * (lane + self.above)

    def size(self, rollouts: int) -> Place:
        """Width and height of the figure."""
        return round(ROOT + self.column * self.longest + 30), TOP + BOTTOM + LANE * (rollouts + self.above - 1)

    def path(self, begin: Place, end: Place) -> str:
        """Of the edge between two dots."""
        (x0, y0), (x1, y1) = begin, end
        start = f"M{x0:g} {y0:g}"
        if x1 - x0 < 1.5 * self.column:
            return f"{start}{'' if y0 == y1 else _turn((x0, y0), (x0 + TURN, y1))}H{x1:g}"
        passage = y1 - PASSAGE
        before = x1 - self.column + 18
        down = _turn((before, passage), (x1 - FIGURE, y1))
        return f"{start}{_turn((x0, y0), (x0 + TURN, passage))}H{before:g}{down}H{x1:g}"


def figure_of_edge(end: Place) -> Place:
    """Where the figure of an edge ends that arrives here."""
    return end[0] - 14, end[1] - 6


def figure_of_dot(dot: Place) -> Place:
    """Where the figure of a dot ends: what leaves the dot is to its right."""
    return dot[0] + 7, dot[1] + 23


def _turn(begin: Place, end: Place) -> str:
    (x0, y0), (x1, y1) = begin, end
    return f"C{x1:g} {y0:g} {x0:g} {y1:g} {x1:g} {y1:g}"
