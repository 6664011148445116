"""Whether a module's outputs follow from its inputs, parameters and buffers, which are all that a kernel gets.

And whether those that are declared as indices are some.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kernelblaster.errors import ProblemError
from kernelblaster.problems.problem import Problem
from kernelblaster.problems.reference import TORCH, blaming, load_reference, outputs_of

if TYPE_CHECKING:
    import torch


def require_sound_reference(problem: Problem) -> None:
    """Run the module with real values at the cheap size; it has to be affordable there.

    A reference that gives something else every time leaves an error budget so wide that a kernel of zeros is in it.
    The module is made twice, and given the same parameters and buffers. Raises ProblemError where it gives something
    else when it is called again, or when it is made again, or an output that `INDICES` declares points nowhere.
    """
    import torch

    reference, size = load_reference(problem), problem.cheap_workload
    with TORCH, torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        first, given = reference.model(size), reference.inputs(size)
        torch.manual_seed(1)
        second = reference.model(size)
        blaming(problem, lambda: second.load_state_dict(first.state_dict()))
        expected, again, other = (
            _outputs(problem, model, given, seed) for seed, model in enumerate((first, first, second), start=2)
        )
    _require_indices(problem, dict(zip(reference.input_names, given, strict=False)), expected)
    if not blaming(problem, lambda: _same(expected, again)):
        raise ProblemError(
            f"{problem.reference_path}: forward is random: it gives something else for the same inputs",
            hint="draw and keep nothing in forward; F.dropout needs training=self.training",
        )
    if not blaming(problem, lambda: _same(expected, other)):
        raise ProblemError(
            f"{problem.reference_path}: Model holds values drawn at random that are no parameter and in no state_dict",
            hint="make them parameters, or register_buffer without persistent=False: kernels get these",
        )


def _require_indices(problem: Problem, given: Mapping[str, Any], outputs: Sequence[torch.Tensor]) -> None:
    """Raise ProblemError where an output holds a number that is no index into the input that it is declared to be."""
    for name, source in problem.indices.items():
        indices, extents = outputs[problem.outputs.index(name)], given[source.tensor].shape
        if not -len(extents) <= source.axis < len(extents) or not indices.numel():
            continue  # whose shapes do not fit, which is told where those are compared
        extent = extents[source.axis]
        if not 0 <= int(indices.min()) <= int(indices.max()) < extent:
            raise ProblemError(
                f"{problem.reference_path}: INDICES declares {name} as indices into {source.tensor} along axis "
                f"{source.axis}, whose extent is {extent}, and it holds {int(indices.max())}",
                hint="leave it out of INDICES where it points into no input",
            )


def _outputs(problem: Problem, model: torch.nn.Module, given: Sequence[Any], seed: int) -> tuple[torch.Tensor, ...]:
    """Copies of the outputs for copies of the inputs: a module may change them in place, and return its own tensors."""
    import torch

    torch.manual_seed(seed)
    copies = [one.clone() if isinstance(one, torch.Tensor) else one for one in given]
    return tuple(one.clone() for one in outputs_of(problem, blaming(problem, lambda: model(*copies))))


def _same(ones: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
    """Whether every element is equal, or NaN in both."""
    pairs = list(zip(ones, others, strict=True))
    if any(one.shape != other.shape for one, other in pairs):
        return False
    return all(bool(((one == other) | ((one != one) & (other != other))).all()) for one, other in pairs)
