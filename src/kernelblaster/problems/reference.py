"""The PyTorch truth of a problem: `reference.py` executed in a module of its own, and the tensors it implies.

Only this module and `audit` import torch; both do so when they are asked for something, not when they are imported.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from kernelblaster.errors import ProblemError
from kernelblaster.problems.problem import Precision, Problem, TensorRole, TensorSpec
from kernelblaster.problems.time_limit import within_time

if TYPE_CHECKING:
    import torch

TORCH = threading.RLock()
"""Held by whoever changes or relies on what is global to torch: seed, default type, default device, numeric flags."""
OUTPUT = "output"
"""Name of the output tensor of every problem."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Reference:
    """What `reference.py` defines.

    Values and weights are drawn from torch's global generator: seed it before, for the same values again. They are
    made on torch's default device; `with torch.device("meta")` gives shapes without memory.
    """

    problem: Problem
    module: ModuleType

    @property
    def input_names(self) -> tuple[str, ...]:
        """Arguments of `Model.forward`, in order."""
        parameters = inspect.signature(self.module.Model.forward).parameters
        return tuple(parameters)[1:]

    def inputs(self, size: str) -> list[torch.Tensor]:
        """Freshly drawn inputs, in forward's order, floating-point ones in float32."""
        return list(self._at(size, self.module.get_inputs))

    def model(self, size: str) -> torch.nn.Module:
        """A freshly initialised module in evaluation mode, weights in float32."""
        model: torch.nn.Module = self._at(
            size, lambda name: self.module.Model(*self.module.get_init_inputs(name)).eval()
        )
        return model

    def _at(self, size: str, function: Callable[[str], Result]) -> Result:
        if size not in self.problem.sizes:
            declared = ", ".join(self.problem.sizes) or "none"
            raise ProblemError(f"{self.problem.slug} declares no size {size}", hint=f"its sizes are {declared}")
        with blaming(self.problem):
            return function(str(size))


def load_reference(problem: Problem) -> Reference:
    """Execute `reference.py` in a fresh module that nothing else can import; its `SIZES` are those of the problem.

    Raises ProblemError when there is none, it fails, or it lacks `Model`, `get_inputs` or `get_init_inputs`.
    """
    problem.require_reference()
    path = problem.reference_path
    module = ModuleType(f"reference_{problem.slug}")
    module.__file__ = str(path)
    # Not importlib: it would leave a __pycache__ in directories that may be read-only or a user's own.
    with blaming(problem):
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    missing = [name for name in ("Model", "get_inputs", "get_init_inputs") if name not in module.__dict__]
    if missing:
        raise ProblemError(f"{path} does not define {', '.join(missing)}", hint="define them as KernelBench does")
    module.__dict__["SIZES"] = {str(size): dict(extents) for size, extents in problem.sizes.items()}
    return Reference(problem, module)


def tensor_specs(problem: Problem, size: str, precision: Precision) -> tuple[TensorSpec, ...]:
    """The tensors that cross the launcher: output, inputs, weights, in the launcher's order.

    Shapes come from running the reference on torch's `meta` device, which allocates no elements.
    Raises ProblemError.
    """
    import torch

    reference = load_reference(problem)
    with TORCH, torch.device("meta"), torch.no_grad():
        model = reference.model(size)
        inputs = reference.inputs(size)
        names = reference.input_names
        if len(names) != len(inputs):
            raise ProblemError(
                f"forward of {problem.slug} takes {len(names)} inputs, get_inputs gives {len(inputs)}",
                hint="make the two agree",
            )
        with blaming(problem):
            output = model(*inputs)
    if not isinstance(output, torch.Tensor):
        raise ProblemError(f"{problem.slug} returns {type(output).__name__}", hint="return one tensor")
    named = [(OUTPUT, TensorRole.OUTPUT, output)]
    named += [(name, TensorRole.INPUT, tensor) for name, tensor in zip(names, inputs, strict=True)]
    named += [(name, TensorRole.WEIGHT, tensor) for name, tensor in model.state_dict().items()]
    return tuple(
        TensorSpec(name, role, _stored_dtype(problem, name, tensor, precision), tuple(tensor.shape))
        for name, role, tensor in named
    )


def _stored_dtype(problem: Problem, name: str, tensor: torch.Tensor, precision: Precision) -> str:
    """How the launcher receives a tensor: floating-point ones in the run's precision, others as they are."""
    import torch

    if tensor.dtype.is_floating_point:
        return str(precision)
    stored = {torch.int64: "int64", torch.int32: "int32", torch.bool: "bool"}.get(tensor.dtype)
    if stored is None:
        raise ProblemError(
            f"{name} of {problem.slug} is {tensor.dtype}", hint="use floating point, int64, int32 or bool"
        )
    return stored


@contextmanager
def blaming(problem: Problem) -> Iterator[None]:
    """Turn what the problem's own code raises, or that it takes for ever, into a ProblemError that names its file."""
    try:
        with within_time(problem):
            yield
    except ProblemError:
        raise
    except Exception as error:
        raise ProblemError(
            f"{problem.reference_path} fails: {type(error).__name__}: {error}", hint="correct the file"
        ) from error
