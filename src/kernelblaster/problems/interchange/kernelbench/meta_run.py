"""One run of a module on torch's meta device: which tensors cross the launcher, and what a check costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kernelblaster.errors import ProblemError
from kernelblaster.problems.interchange.kernelbench.literal_extents import Shapes
from kernelblaster.problems.interchange.kernelbench.plain_forward import flat
from kernelblaster.problems.problem import Problem, StandardWorkload
from kernelblaster.problems.reference import TORCH, Reference, blaming, load_reference, weights_of

if TYPE_CHECKING:
    import torch

FULL = StandardWorkload.FULL
CHEAP_ELEMENTS, CHEAP_OPERATIONS = 1 << 18, 1 << 26
"""What is cheap to check: elements of all tensors together, operations of products and convolutions."""


@dataclass(frozen=True)
class MetaRun:
    """One run of a module on torch's meta device, with its arguments by name and its floating-point operations."""

    reference: Reference
    model: torch.nn.Module
    given: Mapping[str, object]
    returned: object
    operations: int


@dataclass(frozen=True)
class ModuleTensors:
    """What one run on torch's meta device shows: names in the launcher's order, numbers, and how much there is."""

    inputs: Mapping[str, tuple[int, ...]]
    numbers: Mapping[str, float]
    weights: tuple[str, ...]
    outputs: int
    elements: int
    operations: int

    @property
    def cost(self) -> float:
        """1 where it is just cheap to check."""
        return max(self.elements / CHEAP_ELEMENTS, self.operations / CHEAP_OPERATIONS)


def run_for_shapes(problem: Problem) -> MetaRun:
    """Run a module at `FULL`, its own size. Raises ProblemError where it does not run on the meta device."""
    from torch.utils.flop_counter import FlopCounterMode

    from kernelblaster.problems.shape_only import shapes_only

    reference = load_reference(problem)
    counter = FlopCounterMode(display=False)
    with TORCH, shapes_only():
        model, given = reference.model(FULL), reference.inputs(FULL)
        with counter:
            returned = blaming(problem, lambda: model(*given))
    named = dict(zip(reference.input_names, given, strict=False))
    return MetaRun(reference, model, named, returned, counter.get_total_flops())


def inputs_for_shapes(problem: Problem) -> list[object] | None:
    """What `get_inputs` gives at `FULL` on the meta device; None where inputs cannot be drawn."""
    from kernelblaster.problems.shape_only import shapes_only

    try:
        with TORCH, shapes_only():
            return load_reference(problem).inputs(FULL)
    except ProblemError:
        return None


def shapes_of(run: MetaRun) -> Shapes:
    """Of all tensors that cross the launcher."""
    import torch

    return Shapes(
        inputs={name: tuple(value.shape) for name, value in run.given.items() if isinstance(value, torch.Tensor)},
        weights={name: tuple(value.shape) for name, value in weights_of(run.model).items()},
        outputs=tuple(tuple(value.shape) for value in flat(run.returned) if isinstance(value, torch.Tensor)),
    )


def tensors_of(run: MetaRun) -> ModuleTensors:
    """What crosses the launcher. Raises ProblemError where that is anything but tensors and fractions."""
    import torch

    tensors = {name: value for name, value in run.given.items() if isinstance(value, torch.Tensor)}
    numbers = {name: value for name, value in run.given.items() if isinstance(value, float)}
    every = run.returned if isinstance(run.returned, tuple | list) else (run.returned,)
    require_passable(run.reference, run.given, every)
    weights = weights_of(run.model)
    together = [*tensors.values(), *weights.values(), *every]
    return ModuleTensors(
        inputs={name: tuple(value.shape) for name, value in tensors.items()},
        numbers=numbers,
        weights=tuple(weights),
        outputs=len(every),
        elements=sum(tensor.numel() for tensor in together),
        operations=run.operations,
    )


def cost_of(problem: Problem, parameters: Mapping[str, int]) -> float | None:
    """Of a check with these parameters; None where the module does not run with them."""
    try:
        return tensors_of(run_for_shapes(replace(problem, workloads={FULL: dict(parameters)}))).cost
    except ProblemError:
        return None


def require_passable(reference: Reference, given: Mapping[str, object], returned: Iterable[object]) -> None:
    """Raise ProblemError unless inputs are tensors and fractions, and outputs are tensors."""
    import torch

    odd = [(name, value) for name, value in given.items() if not isinstance(value, float | torch.Tensor)]
    if odd:
        (name, value), *_ = odd
        place = place_of(reference, reference.module.get_inputs)
        raise ProblemError(
            f"{place}: get_inputs gives {_kind(value)} for the input {name}",
            hint=f"leave {name} out: give it a default in forward, or assign it at the file's top level"
            if value is None or isinstance(value, int | str)
            else "give tensors and fractions alone, each as an argument of forward",
        )
    kinds = [_kind(one) for one in returned if not isinstance(one, torch.Tensor)]
    if kinds:
        raise ProblemError(
            f"{place_of(reference, reference.module.Model.forward)}: forward returns {kinds[0]} as an output",
            hint="return tensors alone",
        )


def _kind(value: object) -> str:
    return repr(value) if value is None or isinstance(value, int) else f"a {type(value).__name__}"


def place_of(reference: Reference, function: Callable[..., object]) -> str:
    """File and line of a function of the reference; the file alone of one that lies elsewhere."""
    path, code = reference.problem.reference_path, getattr(function, "__code__", None)
    return f"{path}:{code.co_firstlineno}" if code and code.co_filename == str(path) else str(path)
