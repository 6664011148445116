"""Numbers that say how inputs are drawn and nothing else, such as a seed or a spread: no kernel has to do with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernelblaster.problems.interchange.kernelbench.meta_run import FULL, inputs_for_shapes
from kernelblaster.problems.interchange.kernelbench.module_text import ModuleText
from kernelblaster.problems.problem import Problem


def without_idle_numbers(module: ModuleText, draft: Problem) -> ModuleText:
    """The module without numbers that neither its model reads nor any shape of an input follows: constants."""
    idle = {name for name in module.drawing if not _shapes_follow(draft, name)}
    return replace(
        module,
        parameters={name: value for name, value in module.parameters.items() if name not in idle},
        scalars={name: value for name, value in module.scalars.items() if name not in idle},
    )


def _shapes_follow(draft: Problem, name: str) -> bool:
    """Whether shapes of inputs are others where a number is; also where inputs cannot be drawn with any other."""
    usual = _shapes(draft)
    found = [shapes for other in _others(draft, name) if (shapes := _shapes(other)) is not None]
    return not found or any(shapes != usual for shapes in found)


def _others(draft: Problem, name: str) -> Iterator[Problem]:
    """The problem with other values of a number."""
    extents = draft.workloads[FULL]
    if name in extents:
        for extent in (extents[name] + 1, 2 * extents[name], extents[name] // 2):
            yield replace(draft, workloads={FULL: {**extents, name: extent}})
    else:
        for factor in (2.0, 0.5):
            yield replace(draft, scalars={**draft.scalars, name: factor * draft.scalars[name]})


def _shapes(problem: Problem) -> list[object] | None:
    """Of inputs, and what stands in their place; None where they cannot be drawn."""
    import torch
    from torch.utils._pytree import tree_leaves

    given = inputs_for_shapes(problem)
    if given is None:
        return None
    return [tuple(one.shape) if isinstance(one, torch.Tensor) else one for one in tree_leaves(given)]
