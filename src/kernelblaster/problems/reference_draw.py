"""One draw of a problem's inputs and weights in float64, and what its reference makes of them: what audits look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelblaster.problems.problem import Problem
from kernelblaster.problems.reference import arguments, blaming, load_reference, outputs_of, run_model, weights_of

if TYPE_CHECKING:
    import torch

SEEDS = (11, 12)


@dataclass(frozen=True)
class ReferenceDraw:
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

        # Clones, for forward may change what it is given.
        inputs = {name: changed.get(name, value).clone() for name, value in self.inputs.items()}
        state = {name: changed.get(name, value) for name, value in weights_of(self.model).items()}
        given = tuple(arguments(self.problem, self.model, inputs))
        return outputs_of(self.problem, torch.func.functional_call(self.model, state, given))

    def distance(self, outputs: Sequence[torch.Tensor]) -> float:
        """How far other outputs are from its own: the largest distance of any."""
        return max(distance(got, old) for got, old in zip(outputs, self.outputs.values(), strict=True))

    def effect(self, name: str, value: torch.Tensor) -> float:
        """How far the outputs move when one tensor has another value."""
        return self.distance(self.run({name: value}))


def draw_reference(problem: Problem, workload: str | None = None, seed: int = SEEDS[0]) -> ReferenceDraw:
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
        given = {name: value.clone() for name, value in inputs.items()}
        outputs = blaming(problem, lambda: run_model(problem, model, given))
    return ReferenceDraw(problem, model, inputs, dict(zip(problem.outputs, outputs, strict=True)))


def distance(got: torch.Tensor, expected: torch.Tensor) -> float:
    """||got - expected|| / ||expected||; of integers and flags, which must be equal, the share that is not."""
    if not expected.is_floating_point():
        return float((got.double() != expected.double()).double().mean())
    return float((got.double() - expected.double()).norm() / expected.double().norm())
