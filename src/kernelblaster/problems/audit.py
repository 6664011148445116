"""Audits a problem: would a kernel that does not do the work be judged correct?

Run on the reference alone, at its cheap size or another in float64, with relative errors in the Euclidean norm:

1. a reference whose output is zero, not finite, or the same for every draw proves nothing;
2. an input or weight that the output does not depend on may be ignored by a candidate, and so may one that holds a
   single value (a scale of ones);
3. outputs that need no work (the mean, a copy of an input) must be wrong.

`evaluation.integrity.admission` asks the judge itself, in each precision, also about what `shortcuts` finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelblaster.problems.problem import Problem, ValueRange
from kernelblaster.problems.reference import (
    arguments,
    blaming,
    load_reference,
    outputs_of,
    run_model,
    weights_of,
)

if TYPE_CHECKING:
    import torch

    from kernelblaster.problems.shortcuts import Shortcut

TRIVIAL_ERROR = 1e-2
"""An output that needs no work must be wrong by more than this. The error budget of fp16 is about 1e-3."""
LEAST_EFFECT = 1e-3
"""Changing one tensor must change the output by more than this, so that fp16 resolves it."""
PERTURBATION = 0.5
"""Noise added to a tensor to see its effect, in units of its root mean square."""
_SEEDS = (11, 12)


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
        other = draw_reference(problem, workload, _SEEDS[1]).outputs
        faults = [
            fault
            for name, output in first.outputs.items()
            for fault in _degenerate(_called(name, first), output, other[name])
        ]
        if not faults:
            faults = [*_ignorable(first), *_trivial(first)]
    return faults


def find_shortcuts(problem: Problem, workload: str | None = None) -> list[Shortcut]:
    """What a kernel might leave out, see `shortcuts`. Raises ProblemError."""
    import torch

    from kernelblaster.problems.shortcuts import shortcuts

    with torch.random.fork_rng(), torch.no_grad():
        return shortcuts(draw_reference(problem, workload))


@dataclass(frozen=True)
class Draw:
    """One draw of inputs and weights, in float64, and what the reference makes of them."""

    problem: Problem
    model: torch.nn.Module
    inputs: dict[str, torch.Tensor]
    outputs: dict[str, torch.Tensor]

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Inputs and weights, by name."""
        yield from self.inputs.items()
        yield from weights_of(self.model).items()

    def run(self, changed: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """The outputs when some inputs or weights have other values."""
        import torch

        inputs = {name: changed.get(name, value) for name, value in self.inputs.items()}
        state = {name: changed.get(name, value) for name, value in self.model.state_dict().items()}
        given = tuple(arguments(self.problem, self.model, inputs))
        return outputs_of(self.problem, torch.func.functional_call(self.model, state, given))

    def distance(self, outputs: Sequence[torch.Tensor]) -> float:
        """How far other outputs are from its own: the largest distance of any."""
        return max(_distance(got, old) for got, old in zip(outputs, self.outputs.values(), strict=True))

    def effect(self, name: str, value: torch.Tensor) -> float:
        """How far the outputs move when one tensor has another value."""
        return self.distance(self.run({name: value}))


def draw_reference(problem: Problem, workload: str | None = None, seed: int = _SEEDS[0]) -> Draw:
    """Draw inputs and weights of a size, the cheap one if None, and run the reference. Raises ProblemError."""
    import torch

    reference, cheap = load_reference(problem), problem.cheap_workload
    size = workload or cheap
    device = torch.device("cuda" if size != cheap and torch.cuda.is_available() else "cpu")
    torch.manual_seed(seed)
    with device:
        model = reference.model(size).double().to(device)
        drawn = reference.tensors(size)
        inputs = {name: t.to(device, torch.float64 if t.is_floating_point() else t.dtype) for name, t in drawn.items()}
        outputs = blaming(problem, lambda: run_model(problem, model, inputs))
    return Draw(problem, model, inputs, dict(zip(problem.outputs, outputs, strict=True)))


def _called(name: str, draw: Draw) -> str:
    return f"the reference output{'' if len(draw.outputs) == 1 else ' ' + name}"


def _degenerate(what: str, output: torch.Tensor, other: torch.Tensor) -> list[str]:
    if not output.isfinite().all() or not other.isfinite().all():
        return [f"{what} is not finite"]
    if not output.any():
        return [f"{what} is zero"]
    if _distance(other, output) <= LEAST_EFFECT:
        return [f"{what} is the same for different draws"]
    return []


def _ignorable(draw: Draw) -> Iterator[str]:
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


def _trivial(draw: Draw) -> Iterator[str]:
    for own, output in draw.outputs.items():
        what = "the output" if len(draw.outputs) == 1 else own
        if output.numel() > 1 and _distance(output.double().mean().expand_as(output), output) <= TRIVIAL_ERROR:
            yield f"its own mean passes for {what}"
        for name, tensor in draw.inputs.items():
            if tensor.numel() != output.numel():
                continue
            if _distance(tensor.reshape(output.shape), output) <= TRIVIAL_ERROR:
                yield f"a copy of {name} passes for {what}"


def _distance(got: torch.Tensor, expected: torch.Tensor) -> float:
    """||got - expected|| / ||expected||; of integers and flags, which must be equal, the share that is not."""
    if not expected.is_floating_point():
        return float((got.double() != expected.double()).double().mean())
    return float((got.double() - expected.double()).norm() / expected.double().norm())
