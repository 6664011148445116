"""Extents that no prompt shows: a kernel must be right for them as it is for the declared ones.

Each large parameter of size `small` is changed to one more than a multiple of usual tile extents: the last tile then
holds a single element, which a bound that is off by one loses. The first one that the largest block of threads covers
at once, and half of it does not, is raised, so that the block has to loop; others are lowered. Parameters that the
reference does not let change alone (a width that a number of heads divides) stay.
"""

from __future__ import annotations

from dataclasses import replace

from kernelblaster.errors import ProblemError
from kernelblaster.problems.problem import Precision, Problem, Size
from kernelblaster.problems.reference import tensor_specs

TILES = (256, 64, 16)
BLOCK = 1024
"""Threads of the largest block."""
RAISED = 2 * BLOCK + 1


def unseen(problem: Problem) -> Problem | None:
    """The problem with other extents under the name `small`; None when none can be changed.

    Raises ProblemError when the reference does not run as it is declared.
    """
    if Size.SMALL not in problem.sizes:
        return None
    declared = _shapes(problem)
    chosen = problem
    for name, extent in problem.sizes[Size.SMALL].items():
        largest = max(extents[name] for extents in problem.sizes.values())
        may_rise = largest >= RAISED > max(chosen.sizes[Size.SMALL].values())
        changed = _with(chosen, name, RAISED if may_rise and BLOCK // 2 < extent <= BLOCK else _lowered(extent))
        try:
            chosen = changed if _shapes(changed) != _shapes(chosen) else chosen
        except ProblemError:
            continue
    return chosen if _shapes(chosen) != declared else None


def _lowered(extent: int) -> int:
    """The largest smaller extent of which a tile of one of `TILES` leaves one element; the extent if there is none."""
    for tile in TILES:
        lowered = (extent - 2) // tile * tile + 1
        if lowered > tile:
            return lowered
    return extent


def _with(problem: Problem, name: str, extent: int) -> Problem:
    return replace(problem, sizes={Size.SMALL: {**problem.sizes[Size.SMALL], name: extent}})


def _shapes(problem: Problem) -> list[tuple[int, ...]]:
    return [spec.shape for spec in tensor_specs(problem, Size.SMALL, Precision.FP16)]
