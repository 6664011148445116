"""What whoever gives a module should know of how it is judged: in evaluation mode, and whole numbers exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelblaster.problems.problem import Precision, Problem, TensorRole, TensorSpec
from kernelblaster.problems.reference import TORCH, load_reference, tensor_specs

_SHOWN = 3
"""Layers that a note names."""


def evaluation_notes(problem: Problem, size: str) -> tuple[str, ...]:
    """One line per kind of layer that training would have do something else, and one of outputs that may be indices.

    Raises ProblemError where the module cannot be made, or its tensors cannot be judged.
    """
    import torch

    from kernelblaster.problems.shape_only import shapes_only

    with TORCH, shapes_only():
        layers = dict(load_reference(problem).model(size).named_modules())
    norms = (torch.nn.modules.batchnorm._BatchNorm, torch.nn.modules.instancenorm._InstanceNorm)
    running = [name for name, layer in layers.items() if isinstance(layer, norms) and layer.track_running_stats]
    dropping = [name for name, layer in layers.items() if _dropped(layer) > 0]
    return (*_notes(running, dropping), *_index_notes(problem, size))


def _index_notes(problem: Problem, size: str) -> Iterator[str]:
    """Of equal values another implementation may choose another, and is wrong unless it is known what was chosen."""
    specs = tensor_specs(problem, size, Precision.FP32)
    told = [
        spec
        for spec in specs
        if spec.role is TensorRole.OUTPUT and spec.dtype.label == "int64" and spec.name not in problem.indices
    ]
    given = [spec for spec in specs if spec.role is TensorRole.INPUT]
    if not told:
        return
    form = ", ".join(f'"{one.name}": {source}' for one in told if (source := _source(one, given)))
    declared = f"; those that hold indices into an input are declared at the file's top level: INDICES = {{{form}}}"
    yield f"judged exactly, of equal values too: {', '.join(one.name for one in told)}{declared if form else ''}"


def _source(output: TensorSpec, given: Sequence[TensorSpec]) -> str:
    """An input and an axis of it into which an output may point by its shape, as `INDICES` has it; else empty."""
    shape = tuple(output.shape)
    for one in given:
        for axis in reversed(range(len(one.shape))):
            others = (*one.shape[:axis], *one.shape[axis + 1 :])
            if shape == others or (len(shape) == len(one.shape) and (*shape[:axis], *shape[axis + 1 :]) == others):
                return f'("{one.name}", {axis})'
    return ""


def _dropped(layer: object) -> float:
    """The share that a layer leaves out in training: `p` of dropout, `dropout` of attention and recurrences."""
    import torch

    share = getattr(layer, "p" if isinstance(layer, torch.nn.modules.dropout._DropoutNd) else "dropout", 0.0)
    return share if isinstance(share, float | int) else 0.0


def _notes(running: Sequence[str], dropping: Sequence[str]) -> Iterator[str]:
    if running:
        yield (
            f"judged in evaluation mode, where normalisation uses its running statistics: {_names(running)}; "
            "give it track_running_stats=False for those of the batch"
        )
    if dropping:
        yield f"judged in evaluation mode, where dropout leaves nothing out: {_names(dropping)}"


def _names(layers: Sequence[str]) -> str:
    more = len(layers) - _SHOWN
    shown = ", ".join(name or "the module itself" for name in layers[:_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown
