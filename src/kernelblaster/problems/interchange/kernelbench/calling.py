"""How a module is made and called: with arguments in order. Those by name are put in order, others are refused."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from string import Template
from typing import Any

from kernelblaster.errors import ProblemError
from kernelblaster.problems.interchange.kernelbench.module_text import ModuleText, unused
from kernelblaster.problems.problem import Problem, StandardWorkload
from kernelblaster.problems.reference import TORCH, Reference, blaming, load_reference

_FULL = StandardWorkload.FULL
_BY_NAME = Template("""$given = get_init_inputs
$made = Model.__init__


def $init(self, arguments, named):
    $made(self, *arguments, **named)


def get_init_inputs(size="$size"):
    returned = $given(size)
    return [[], returned] if isinstance(returned, dict) else returned


Model.__init__ = $init


""")


def in_order(module: ModuleText, draft: Problem) -> Callable[[ModuleText], ModuleText]:
    """What puts arguments in order where `get_init_inputs` gives them by name, whatever else becomes of the module.

    They are a dictionary, or a list of arguments in order beside a dictionary of others. Raises ProblemError.

    Args:
        module: as it is.
        draft: a problem whose reference it is.
    """
    from kernelblaster.problems.shape_only import shapes_only

    reference = load_reference(draft)
    with TORCH, shapes_only():
        given = blaming(draft, lambda: reference.module.get_init_inputs(_FULL))
    if not _is_by_name(given, reference):
        return lambda other: other
    names = {name: unused(f"_{name}", module.text) for name in ("given", "made", "init")}
    below = _BY_NAME.substitute(size=_FULL, **names)
    return lambda other: replace(other, text=other.text + below)


def require_order(draft: Problem) -> None:
    """Raise ProblemError where `forward` takes any number of arguments, or layers take their shapes from them."""
    import torch

    from kernelblaster.problems.shape_only import shapes_only

    reference = load_reference(draft)
    with TORCH, shapes_only():
        given, model = reference.inputs(_FULL), reference.model(_FULL)
    for it in reference.parameters.values():
        if it.kind in (it.VAR_POSITIONAL, it.VAR_KEYWORD):
            names = ", ".join(f"{it.name}_{at}" for at in range(len(given)))
            raise ProblemError(
                f"{draft.reference_path}: forward takes any number of arguments, {it}",
                hint=f"name each of those that get_inputs gives, for example def forward(self, {names})",
            )
    lazy = [name for name, layer in model.named_modules() if isinstance(layer, torch.nn.modules.lazy.LazyModuleMixin)]
    if lazy:
        raise ProblemError(
            f"{draft.reference_path}: {lazy[0] or 'Model'} is a lazy layer, whose weights have no shape yet",
            hint="give its extents, for example nn.Linear(in_features, out_features) instead of nn.LazyLinear",
        )


def _is_by_name(given: Any, reference: Reference) -> bool:
    """Whether `get_init_inputs` gives arguments by name, all of which `Model` has."""
    pair = isinstance(given, Sequence) and len(given) == 2 and isinstance(given[0], list | tuple)
    named = given[1] if pair else given
    if not isinstance(named, Mapping) or not named:
        return False
    parameters = inspect.signature(reference.module.Model.__init__).parameters
    return any(it.kind is it.VAR_KEYWORD for it in parameters.values()) or set(named) <= set(parameters)
