"""Parameters that are the same at all declared sizes, and scalars: a kernel takes them from the launcher, too.

A window, a stride or a number of groups is an extent of no tile, and an epsilon is no extent at all: both would stand
in kernels as literals unless some judged call varies them. So each is changed where the reference can be built with
another value and its result then differs; what cannot be changed is fixed, and prompts say so.

One other value finds a literal, and no mistake that only some values meet: a table that ends, a stride and a dilation
with a common factor. So parameters that can be changed are also drawn, anew in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, lru_cache
from random import Random
from typing import TYPE_CHECKING

from kernelblaster.errors import ProblemError
from kernelblaster.problems.problem import Problem, StandardWorkload
from kernelblaster.problems.reference import multiply_adds, results, tensor_specs

if TYPE_CHECKING:
    import torch

LARGEST = 16
"""Larger parameters are extents, which `undeclared_extents` changes."""
_TINY = 2.0**-6
_IN_PLACE_OF_TINY = 2.0**-4
"""An epsilon of this size shows in the results of any precision."""
_IN_PLACE_OF_NOTHING = 0.5
_SMALLER = 0.625
_GROWTH, _AT_LEAST = 3, 8
"""A drawn parameter is at most so many times its declared value, or `_AT_LEAST`."""
_MOST_WORK = 4
"""Times the multiply-adds before: a call must stay cheap."""
_DRAWS = 4
"""Values tried for one parameter."""


def vary_parameters(problem: Problem, chosen: Problem) -> Problem:
    """`chosen`, which is `problem` at other extents, with other small parameters and scalars as well."""
    known = lru_cache(maxsize=5)(results)  # of the problem as it is by now, beside attempts to change a parameter
    for name in _constant_parameters(problem):
        if chosen.workloads[chosen.cheap_workload][name] == problem.workloads[problem.cheap_workload][name]:
            chosen = _first_accepted(chosen, _with_parameter(chosen, name), known)
    for name in problem.scalars:
        chosen = _first_accepted(chosen, _with_scalar(chosen, name), known)
    return chosen


def draw_parameters(problem: Problem, other: Problem, random: Random) -> Problem | None:
    """`other`, which is `problem` at undeclared extents, with the parameters that it varies drawn; None without any.

    In half of the draws all values are even, because some mistakes need a common factor.
    """
    cheap, step, chosen = problem.cheap_workload, random.choice((1, 2)), other
    declared, varied = problem.workloads[cheap], other.workloads[cheap]
    names = [name for name in _constant_parameters(problem) if declared[name] != varied[name]]
    if not names:
        return None
    tensors, most = _tensors(other), _MOST_WORK * multiply_adds(other)
    for name in random.sample(names, len(names)):
        values = _other_values((declared[name], varied[name]), step, random)
        attempts = (_with_value(chosen, name, value) for value in values)
        chosen = next((attempt for attempt in attempts if _is_cheap(attempt, tensors, most)), chosen)
    return None if chosen is other else chosen


def _other_values(known: tuple[int, int], step: int, random: Random) -> list[int]:
    """Multiples of `step` in random order, none of those known; in half of the draws the largest, where tables end."""
    largest = max(_GROWTH * known[0], _AT_LEAST)
    least = random.choice((step, 2 * largest // 3 // step * step))
    values = [value for value in range(least, largest + 1, step) if value not in known]
    return random.sample(values, min(_DRAWS, len(values)))


def _is_cheap(attempt: Problem, tensors: int, most: int) -> bool:
    """Whether the reference runs, with so many tensors (each layer costs something) and multiply-adds at most."""
    try:
        return _tensors(attempt) == tensors and multiply_adds(attempt) <= most
    except ProblemError:
        return False


def _tensors(problem: Problem) -> int:
    return len(tensor_specs(problem, problem.cheap_workload, problem.precisions[0]))


@cache
def fixed_parameters(problem: Problem, other: Problem | None) -> tuple[str, ...]:
    """Parameters and scalars that are the same at all declared sizes, and at the undeclared one, if there is one."""
    cheap = problem.cheap_workload
    judged = [*problem.workloads.values(), *([] if other is None else [other.workloads[cheap]])]
    scalars = [problem.scalars, *([] if other is None else [other.scalars])]
    fixed = [name for name in problem.workloads[cheap] if len({extents[name] for extents in judged}) == 1]
    return (*fixed, *(name for name in problem.scalars if len({values[name] for values in scalars}) == 1))


def _constant_parameters(problem: Problem) -> list[str]:
    """Small parameters with one value at all declared sizes but `v0`, which few runs judge."""
    declared = [extents for name, extents in problem.workloads.items() if name != StandardWorkload.V0]
    same = [name for name in declared[0] if len({extents[name] for extents in declared}) == 1]
    return [name for name in same if declared[0][name] <= LARGEST]


def _with_parameter(problem: Problem, name: str) -> Iterator[Problem]:
    cheap = problem.cheap_workload
    value = problem.workloads[cheap][name]
    for other in dict.fromkeys((value + 1, 2 * value, value - 1, value // 2)):
        if other > 0:
            yield _with_value(problem, name, other)


def _with_value(problem: Problem, name: str, value: int) -> Problem:
    cheap = problem.cheap_workload
    return replace(problem, workloads={cheap: {**problem.workloads[cheap], name: value}})


def _with_scalar(problem: Problem, name: str) -> Iterator[Problem]:
    value = problem.scalars[name]
    other = _SMALLER * value
    if abs(value) < _TINY:
        other = _IN_PLACE_OF_NOTHING if value == 0 else _IN_PLACE_OF_TINY if value > 0 else -_IN_PLACE_OF_TINY
    yield replace(problem, scalars={**problem.scalars, name: other})


def _first_accepted(
    before: Problem, attempts: Iterator[Problem], known: Callable[[Problem], tuple[torch.Tensor, ...]]
) -> Problem:
    """The first attempt whose reference runs and gives something else; else the problem as it was."""
    import torch

    declared = known(before)
    for attempt in attempts:
        try:
            found = known(attempt)
        except ProblemError:
            continue
        if any(
            one.shape != other.shape or not torch.equal(one, other) for one, other in zip(declared, found, strict=True)
        ):
            return attempt
    return before
