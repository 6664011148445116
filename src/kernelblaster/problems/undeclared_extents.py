"""Extents that no prompt shows: a kernel must be right for them as it is for the declared ones.

Each large parameter of size `small` is changed to one more than a multiple of usual tile extents: the last tile then
holds a single element, which a bound that is off by one loses. One parameter is raised, so that a block of threads that
covers the declared extent has to loop: the first one that the largest block covers at once, and half of it does not, or
else, where no extent is beyond a usual block, the first long one that other sizes have beyond it. All others are
lowered, as little as the reference allows: a width that is split among heads, say, stays divisible. The first of them
is lowered to one less than a multiple: there the last tile is nearly full, and all turns of an unrolled loop over it
find work. Parameters that cannot change alone stay. Where none changes, for all are below the smallest tile, each is
raised by one.

Where an input passes through, beside smaller tensors that are scales, shifts or the like, all extents of a sample that
are not raised become `SHORT`: kernels for such problems take rows in vectors, and these rows end within the first. What
is averaged over a sample is then averaged over few elements: a divisor that is off by one shows.

Parameters that are no extents, and scalars, change there as well (`varied_parameters`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from kernelblaster.errors import ProblemError
from kernelblaster.problems.problem import Problem
from kernelblaster.problems.reference import tensor_specs
from kernelblaster.problems.varied_parameters import vary_parameters

TILES = (256, 64, 16)
LARGEST_BLOCK, USUAL_BLOCK = 1024, 256
"""Threads."""
RAISED, RAISED_LITTLE = 2 * LARGEST_BLOCK + 1, USUAL_BLOCK + 64 + 1
"""So far beyond the block that what a second turn adds matters: one key more, of many, hardly does in an attention."""
MOST_GROWTH = 8
"""A call must stay cheap: shorter extents are not raised."""
SHORT_ROW, SHORT = 3, 5
"""Of the last axis, and of others. The last row, of one less than a multiple of eight rows, does not begin where a
vector does, so that what is written beyond the rest of its vector is written beyond the tensor."""
_ATTEMPTS = 4
"""Extents tried for one parameter."""
_ShapesOf = Callable[[Problem], list[tuple[int, ...]]]
"""`_shapes` that remembers: a reference of many operations takes seconds for its shapes alone."""


def undeclared_extents(problem: Problem) -> Problem | None:
    """The problem with its cheap workload alone, at other extents, parameters and scalars; None when none can change.

    Raises ProblemError when the reference does not run as it is declared.
    """
    shapes = cache(_shapes)
    short = _short(problem, shapes)
    chosen = problem
    for name in problem.workloads[problem.cheap_workload]:
        chosen = _first_accepted(chosen, name, _candidates(problem, chosen, name, short.get(name), shapes), shapes)
    varied = vary_parameters(problem, chosen)
    if varied is problem:
        for name, extent in problem.workloads[problem.cheap_workload].items():
            varied = _first_accepted(varied, name, [extent + 1], shapes)
    return None if varied is problem else varied


def _first_accepted(problem: Problem, name: str, extents: Sequence[int], shapes: _ShapesOf) -> Problem:
    changed = (_accepted(problem, name, extent, shapes) for extent in extents)
    return next((one for one in changed if one is not None), problem)


def _candidates(problem: Problem, chosen: Problem, name: str, short: int | None, shapes: _ShapesOf) -> list[int]:
    """Extents to try for a parameter, the best first; `short` is one in place of all that are lowered."""
    extent = problem.workloads[problem.cheap_workload][name]
    largest = max(extents[name] for extents in problem.workloads.values())
    longest = max(max(shape, default=1) for shape in shapes(chosen))
    tried = []
    if largest >= RAISED > longest and LARGEST_BLOCK // 2 < extent <= LARGEST_BLOCK:
        tried.append(RAISED)
    elif largest >= RAISED_LITTLE > longest and extent > USUAL_BLOCK // MOST_GROWTH:
        tried.append(RAISED_LITTLE)
    if short is not None:
        return [*tried, short]
    now = chosen.workloads[chosen.cheap_workload]
    first = all(now[name] >= declared for name, declared in problem.workloads[problem.cheap_workload].items())
    return [*tried, *(_lowered(extent, -1) if first else ()), *_lowered(extent, 1)][:_ATTEMPTS]


def _lowered(extent: int, rest: int) -> Iterator[int]:
    """Smaller extents that are `rest` more than tiles of one of `TILES`: the largest tile first, descending."""
    for tile in TILES:
        yield from range((extent - 1 - rest) // tile * tile + rest, tile, -tile)


def _short(problem: Problem, shapes: _ShapesOf) -> dict[str, int]:
    """Parameters that are one axis of the output, not the first, and what they become; none where none shall."""
    output, others = shapes(problem)[0], shapes(problem)[len(problem.outputs) :]
    beside = [shape for shape in others if shape != output]
    if output not in others or not beside or not all(_is_part(shape, output) for shape in beside):
        return {}
    found = {}
    for name, extent in problem.workloads[problem.cheap_workload].items():
        changed = _accepted(problem, name, SHORT, shapes) if extent > SHORT else None
        axes = [] if changed is None else _changed_axes(output, shapes(changed)[0])
        if len(axes) == 1 and axes[0] > 0:
            found[name] = SHORT_ROW if axes[0] == len(output) - 1 else SHORT
    return found


def _is_part(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """Whether a shape is that of neighbouring axes of another."""
    return any(whole[at : at + len(shape)] == shape for at in range(len(whole) - len(shape) + 1))


def _changed_axes(before: tuple[int, ...], after: tuple[int, ...]) -> list[int]:
    return [axis for axis, (old, new) in enumerate(zip(before, after, strict=False)) if old != new]


def _accepted(problem: Problem, name: str, extent: int, shapes: _ShapesOf) -> Problem | None:
    """The problem with one parameter changed; None when no tensor changes, or the reference does not run."""
    cheap = problem.cheap_workload
    changed = replace(problem, workloads={cheap: {**problem.workloads[cheap], name: extent}})
    try:
        return changed if shapes(changed) != shapes(problem) else None
    except ProblemError:
        return None


def _shapes(problem: Problem) -> list[tuple[int, ...]]:
    return [spec.shape for spec in tensor_specs(problem, problem.cheap_workload, problem.precisions[0])]
