"""What a kernel might leave out of a problem unnoticed, as far as the reference alone can tell.

A bound or branch of an activation that inputs hardly reach, half of an input or weight that the output hardly depends
on, signs that cancel: candidates, by their effect on declared inputs in float64. Whether the judge would pass a kernel
that leaves them out, `evaluation.integrity.admission` asks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelblaster.problems.branches import Branch, branches_of, without
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.reference_draw import ReferenceDraw, draw_reference

if TYPE_CHECKING:
    import torch

NOTICED = 2e-2
"""Relative distance in norm that the judge sees in any precision; bf16 resolves a few thousandths."""
_FINENESS = (Precision.FP32, Precision.FP16, Precision.BF16)
_AXES = 2
"""Of a tensor, that are halved."""


@dataclass(frozen=True)
class Half:
    """One half of an input or weight along an axis."""

    tensor: str
    axis: int
    second: bool

    def __str__(self) -> str:
        return f"the {'second' if self.second else 'first'} half of {self.tensor} along axis {self.axis}"

    def zeroed(self, value: torch.Tensor) -> torch.Tensor:
        """The tensor with zeros in that half."""
        middle, extent = value.shape[self.axis] // 2, value.shape[self.axis]
        start, length = (middle, extent - middle) if self.second else (0, middle)
        changed = value.clone()
        changed.narrow(self.axis, start, length).zero_()
        return changed


@dataclass(frozen=True)
class Signs:
    """The signs of an input."""

    tensor: str

    def __str__(self) -> str:
        return f"the signs of {self.tensor}"


Shortcut = Branch | Half | Signs


def find_shortcuts(problem: Problem, workload: str | None = None) -> list[Shortcut]:
    """Candidates at one size, the cheap one if None; those that a kernel has a right to take are among them.

    Raises ProblemError when the reference cannot be run.
    """
    import torch

    with torch.random.fork_rng(), torch.no_grad():
        draw = draw_reference(problem, workload)
        return [*_branches(draw), *_halves(draw), *_signs(draw)]


def resolved(shortcuts: Sequence[Shortcut], precision: Precision, precisions: Sequence[Precision]) -> list[Shortcut]:
    """Those that a problem must not allow in a precision.

    Half of a bias of a deep network drowns in what 16 bits round, and a bound that few values pass in the eight bits of
    bf16: halves are asked about in a problem's finest precision alone, and the others in bf16 only if it has no finer.
    """
    if precision is min(precisions, key=_FINENESS.index):
        return list(shortcuts)
    if precision is Precision.BF16:
        return []
    return [shortcut for shortcut in shortcuts if not isinstance(shortcut, Half)]


def _branches(draw: ReferenceDraw) -> Iterator[Branch]:
    for branch, effect in branches_of(lambda: draw.run({})).items():
        if effect <= NOTICED or _effect_without(draw, branch) <= NOTICED:
            yield branch


def _effect_without(draw: ReferenceDraw, branch: Branch) -> float:
    try:
        with without(branch):
            outputs = draw.run({})
    except IndexError:  # the bound of an index: a kernel without it reads beyond a tensor
        return math.inf
    return draw.distance(outputs)


def _halves(draw: ReferenceDraw) -> Iterator[Half]:
    for name, value in draw.tensors():
        if name in draw.problem.partly_read or not value.is_floating_point():
            continue
        for axis in range(min(value.ndim, _AXES)):
            for second in (False, True) if value.shape[axis] > 1 else ():
                half = Half(name, axis, second)
                changed = half.zeroed(value)
                if not changed.equal(value) and draw.effect(name, changed) <= NOTICED:
                    yield half


def _signs(draw: ReferenceDraw) -> Iterator[Signs]:
    for name, value in draw.inputs.items():
        if value.is_floating_point() and bool((value < 0).any()) and draw.effect(name, value.abs()) <= NOTICED:
            yield Signs(name)


def left_out(shortcut: Half | Signs, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Inputs or weights as a kernel sees them that takes a shortcut."""
    changed = dict(tensors)
    if shortcut.tensor in changed:
        value = changed[shortcut.tensor]
        changed[shortcut.tensor] = shortcut.zeroed(value) if isinstance(shortcut, Half) else value.abs()
    return changed
