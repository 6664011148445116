"""Extents that no prompt shows: a kernel must be right for them as it is for the declared ones.

Each large parameter of size `small` is changed to one more than a multiple of usual tile extents: the last tile then
holds a single element, which a bound that is off by one loses. One parameter is raised, so that a block of threads that
covers the declared extent has to loop: the first one that the largest block covers at once, and half of it does not, or
else, where no extent is beyond a usual block, the first long one that other sizes have beyond it. All others are
lowered, as little as the reference allows: a width that is split among heads, say, stays divisible. Parameters that
cannot change alone stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernelblaster.errors import ProblemError
from kernelblaster.problems.problem import Precision, Problem, Size
from kernelblaster.problems.reference import tensor_specs

TILES = (256, 64, 16)
LARGEST_BLOCK, USUAL_BLOCK = 1024, 256
"""Threads."""
RAISED, RAISED_LITTLE = 2 * LARGEST_BLOCK + 1, USUAL_BLOCK + 64 + 1
"""So far beyond the block that what a second turn adds matters: one key more, of many, hardly does in an attention."""
MOST_GROWTH = 8
"""A call must stay cheap: shorter extents are not raised."""
_ATTEMPTS = 4
"""Extents tried for one parameter."""


def unseen(problem: Problem) -> Problem | None:
    """The problem with other extents under the name `small`; None when none can be changed.

    Raises ProblemError when the reference does not run as it is declared.
    """
    if Size.SMALL not in problem.sizes:
        return None
    declared = _shapes(problem)
    chosen = problem
    for name in problem.sizes[Size.SMALL]:
        for extent in _candidates(problem, chosen, name):
            changed = _accepted(chosen, name, extent)
            if changed is not None:
                chosen = changed
                break
    return chosen if _shapes(chosen) != declared else None


def _candidates(problem: Problem, chosen: Problem, name: str) -> list[int]:
    """Extents to try for a parameter, the best first."""
    extent = problem.sizes[Size.SMALL][name]
    largest = max(extents[name] for extents in problem.sizes.values())
    longest = max(max(shape, default=1) for shape in _shapes(chosen))
    tried = []
    if largest >= RAISED > longest and LARGEST_BLOCK // 2 < extent <= LARGEST_BLOCK:
        tried.append(RAISED)
    elif largest >= RAISED_LITTLE > longest and extent > USUAL_BLOCK // MOST_GROWTH:
        tried.append(RAISED_LITTLE)
    return [*tried, *_lowered(extent)][:_ATTEMPTS]


def _lowered(extent: int) -> Iterator[int]:
    """Smaller extents of which a tile of one of `TILES` leaves one element: the largest tile first, descending."""
    for tile in TILES:
        yield from range((extent - 2) // tile * tile + 1, tile, -tile)


def _accepted(problem: Problem, name: str, extent: int) -> Problem | None:
    """The problem with one parameter changed; None when no tensor changes, or the reference does not run."""
    changed = replace(problem, sizes={Size.SMALL: {**problem.sizes[Size.SMALL], name: extent}})
    try:
        return changed if _shapes(changed) != _shapes(problem) else None
    except ProblemError:
        return None


def _shapes(problem: Problem) -> list[tuple[int, ...]]:
    return [spec.shape for spec in tensor_specs(problem, Size.SMALL, Precision.FP16)]
