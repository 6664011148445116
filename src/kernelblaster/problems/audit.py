"""Audits a problem: would a kernel that does not do the work be judged correct?

Run on the reference alone, at its cheap size in float64, with relative errors in the Euclidean norm:

1. a reference whose output is zero, not finite, or the same for every draw proves nothing;
2. an input or weight that the output does not depend on may be ignored by a candidate, and so may one that holds a
   single value (a scale of ones);
3. outputs that need no work (the mean, a copy of an input) must be wrong.

`evaluation.admission` asks the judge itself, in each precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelblaster.problems.problem import Problem
from kernelblaster.problems.reference import Reference, blaming, load_reference

if TYPE_CHECKING:
    import torch

TRIVIAL_ERROR = 1e-2
"""An output that needs no work must be wrong by more than this. The error budget of fp16 is about 1e-3."""
LEAST_EFFECT = 1e-3
"""Changing one tensor must change the output by more than this, so that fp16 resolves it."""
PERTURBATION = 0.5
"""Noise added to a tensor to see its effect, in units of its root mean square."""
_SEEDS = (11, 12)


def audit_problem(problem: Problem) -> list[str]:
    """Faults of a problem, one line each; empty when it is sound.

    Raises ProblemError when the reference cannot be run at its cheap size.
    """
    import torch

    reference = load_reference(problem)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        first, second = (_draw(reference, seed) for seed in _SEEDS)
        faults = _degenerate(first.output, second.output)
        if not faults:
            faults = [*_ignorable(first), *_trivial(first)]
    return faults


@dataclass(frozen=True)
class _Draw:
    """One draw of inputs and weights, in float64, and what the reference makes of them."""

    model: torch.nn.Module
    inputs: dict[str, torch.Tensor]
    output: torch.Tensor

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        yield from self.inputs.items()
        yield from self.model.state_dict().items()

    def output_with(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """The output when one tensor has another value."""
        import torch

        if name in self.inputs:
            found: torch.Tensor = self.model(*{**self.inputs, name: value}.values())
        else:
            state = {**self.model.state_dict(), name: value}
            found = torch.func.functional_call(self.model, state, tuple(self.inputs.values()))
        return found


def _draw(reference: Reference, seed: int) -> _Draw:
    import torch

    torch.manual_seed(seed)
    size = reference.problem.cheap_size
    model = reference.model(size).double()
    tensors = [t.double() if t.is_floating_point() else t for t in reference.inputs(size)]
    inputs = dict(zip(reference.input_names, tensors, strict=True))
    with blaming(reference.problem):
        return _Draw(model, inputs, model(*tensors))


def _degenerate(output: torch.Tensor, other: torch.Tensor) -> list[str]:
    if not output.isfinite().all() or not other.isfinite().all():
        return ["the reference output is not finite"]
    if not output.any():
        return ["the reference output is zero"]
    if _distance(other, output) <= LEAST_EFFECT:
        return ["the reference output is the same for different draws"]
    return []


def _ignorable(draw: _Draw) -> Iterator[str]:
    for name, tensor in draw.tensors():
        if tensor.numel() > 1 and (tensor == tensor.flatten()[0]).all():
            yield f"{name} holds a single value, so that a kernel may ignore it"
        elif _distance(draw.output_with(name, _changed(tensor)), draw.output) <= LEAST_EFFECT:
            yield f"the output does not depend on {name}"


def _changed(tensor: torch.Tensor) -> torch.Tensor:
    """Other values of the same kind: noise on numbers, another order of integers and flags."""
    import torch

    if not tensor.is_floating_point():
        return tensor.flatten().roll(1).reshape(tensor.shape)
    scale = tensor.square().mean().sqrt()
    return tensor + PERTURBATION * (scale if scale > 0 else 1.0) * torch.randn_like(tensor)


def _trivial(draw: _Draw) -> Iterator[str]:
    output = draw.output
    if output.numel() > 1 and _distance(output.mean().expand_as(output), output) <= TRIVIAL_ERROR:
        yield "its own mean passes for the output"
    for name, tensor in draw.inputs.items():
        if tensor.numel() != output.numel():
            continue
        if _distance(tensor.reshape(output.shape).to(output.dtype), output) <= TRIVIAL_ERROR:
            yield f"a copy of {name} passes for the output"


def _distance(got: torch.Tensor, expected: torch.Tensor) -> float:
    """||got - expected|| / ||expected||"""
    return float((got - expected).norm() / expected.norm())
