"""Audits a problem: would a kernel that does not do the work be judged correct?

Run on the reference alone, at its cheap size or another in float64, with relative errors in the Euclidean norm:

1. a reference whose output is zero, not finite, or the same for every draw proves nothing;
2. an input or weight that the output does not depend on may be ignored by a candidate, and so may one that holds a
   single value (a scale of ones);
3. outputs that need no work (the mean, a copy of an input) must be wrong.

`evaluation.integrity.admission` asks the judge itself, in each precision, also about what `shortcuts` finds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernelblaster.problems.problem import Problem, ValueRange
from kernelblaster.problems.reference_draw import SEEDS, ReferenceDraw, distance, draw_reference

if TYPE_CHECKING:
    import torch

TRIVIAL_ERROR = 1e-2
"""An output that needs no work must be wrong by more than this. The error budget of fp16 is about 1e-3."""
LEAST_EFFECT = 1e-3
"""Changing one tensor must change the output by more than this, so that fp16 resolves it."""
PERTURBATION = 0.5
"""Noise added to a tensor to see its effect, in units of its root mean square."""


def audit_problem(problem: Problem, workload: str | None = None) -> list[str]:
    """Faults of a problem, one line each; empty when it is sound.

    Args:
        problem: what is audited.
        workload: at which size; its cheap one if None. Others run on a GPU where torch sees one.

    Raises ProblemError when the reference cannot be run at that size.
    """
    import torch

    with torch.random.fork_rng(), torch.no_grad():
        first = draw_reference(problem, workload)
        other = draw_reference(problem, workload, SEEDS[1]).outputs
        faults = [
            fault
            for name, output in first.outputs.items()
            for fault in _degenerate(_called(name, first), output, other[name])
        ]
        if not faults:
            faults = [*_ignorable(first), *_trivial(first)]
    return faults


def _called(name: str, draw: ReferenceDraw) -> str:
    return f"the reference output{'' if len(draw.outputs) == 1 else ' ' + name}"


def _degenerate(what: str, output: torch.Tensor, other: torch.Tensor) -> list[str]:
    if not output.isfinite().all() or not other.isfinite().all():
        return [f"{what} is not finite"]
    if not output.any():
        return [f"{what} is zero"]
    if distance(other, output) <= LEAST_EFFECT:
        return [f"{what} is the same for different draws"]
    return []


def _ignorable(draw: ReferenceDraw) -> Iterator[str]:
    for name, tensor in draw.tensors():
        if tensor.numel() > 1 and (tensor == tensor.flatten()[0]).all():
            yield f"{name} holds a single value, so that a kernel may ignore it"
        elif draw.effect(name, _changed(tensor, draw.problem.ranges.get(name))) <= LEAST_EFFECT:
            yield f"the output does not depend on {name}"


def _changed(tensor: torch.Tensor, bounds: ValueRange | None) -> torch.Tensor:
    """Other values of the same kind: noise on numbers, mirrored integers in known bounds, other integers reordered."""
    import torch

    if bounds is not None:
        some = torch.rand(tensor.shape, device=tensor.device) < PERTURBATION
        return torch.where(some, bounds.low + bounds.high - tensor.long(), tensor.long()).to(tensor.dtype)
    if not tensor.is_floating_point():
        return tensor.flatten().roll(1).reshape(tensor.shape)
    scale = tensor.square().mean().sqrt()
    return tensor + PERTURBATION * (scale if scale > 0 else 1.0) * torch.randn_like(tensor)


def _trivial(draw: ReferenceDraw) -> Iterator[str]:
    for own, output in draw.outputs.items():
        what = "the output" if len(draw.outputs) == 1 else own
        if output.numel() > 1 and distance(output.double().mean().expand_as(output), output) <= TRIVIAL_ERROR:
            yield f"its own mean passes for {what}"
        for name, tensor in draw.inputs.items():
            if tensor.numel() != output.numel():
                continue
            if distance(tensor.reshape(output.shape), output) <= TRIVIAL_ERROR:
                yield f"a copy of {name} passes for {what}"
