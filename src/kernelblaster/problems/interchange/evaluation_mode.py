"""What a module does otherwise in evaluation mode, in which every problem is judged, than as it was made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelblaster.problems.problem import Problem
from kernelblaster.problems.reference import TORCH, load_reference

_SHOWN = 3
"""Layers that a note names."""


def evaluation_notes(problem: Problem, size: str) -> tuple[str, ...]:
    """One line per kind of layer that a module holds and that training would have do something else.

    Raises ProblemError where the module cannot be made.
    """
    import torch

    from kernelblaster.problems.shape_only import shapes_only

    with TORCH, shapes_only():
        layers = dict(load_reference(problem).model(size).named_modules())
    norms = (torch.nn.modules.batchnorm._BatchNorm, torch.nn.modules.instancenorm._InstanceNorm)
    running = [name for name, layer in layers.items() if isinstance(layer, norms) and layer.track_running_stats]
    dropping = [name for name, layer in layers.items() if _dropped(layer) > 0]
    return tuple(_notes(running, dropping))


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
