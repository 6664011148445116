"""The PyTorch reference of a problem: `reference.py` executed in a module of its own, and the tensors it implies.

Torch is imported when something is asked for, not with this module.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from kernelblaster.errors import ProblemError
from kernelblaster.problems.driver_names import check_names
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.problem import Precision, Problem, TensorRole, TensorSpec
from kernelblaster.problems.python_source import parse_python, place_in, without_assignments
from kernelblaster.problems.time_limit import within_time
from kernelblaster.storage.bounded_io import read_source

if TYPE_CHECKING:
    import torch

TORCH = threading.RLock()
"""Held by whoever changes or relies on what is global to torch: seed, default type, default device, numeric flags."""
Result = TypeVar("Result")
_EXECUTING = threading.RLock()
"""Held while a `reference.py` is executed, which `sys.modules` has for that long."""
_NOT_OF_A_SIZE = frozenset({"SIZES", "TAGS", "MENDS"})
_COUNTER = "num_batches_tracked"
"""Of batch normalisation, which counts calls with it in training and never reads it in evaluation mode."""


def reference_digest(problem: Problem) -> str:
    """16 hexadecimal digits of the SHA-256 of `reference.py`. Raises ProblemError when there is none."""
    problem.require_reference()
    return hashlib.sha256(problem.reference_path.read_bytes()).hexdigest()[:16]


def size_digest(problem: Problem, workload: str) -> str:
    """16 hexadecimal digits of what `reference.py` says of one size, as it is written.

    Neither other sizes nor what nothing is computed from count: what was measured at a size stays valid without them.
    Raises ProblemError when there is none.
    """
    problem.require_reference()
    path, text = problem.reference_path, read_source(problem.reference_path)
    kept = without_assignments(path, text, _NOT_OF_A_SIZE)
    extents = json.dumps(problem.workloads.get(workload), sort_keys=True)
    return hashlib.sha256(f"{kept}\n{extents}".encode()).hexdigest()[:16]


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
        """Arguments of `Model.forward`, in order; those by keyword alone are left at their defaults."""
        return tuple(self.parameters)

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """What `input_names` names."""
        parameters = list(inspect.signature(self.module.Model.forward).parameters.values())[1:]
        return {it.name: it for it in parameters if it.kind is not it.KEYWORD_ONLY or it.default is it.empty}

    def inputs(self, workload: str) -> list[Any]:
        """Freshly drawn arguments of forward, in order: tensors, floating-point ones in float32, and numbers."""
        return list(self._at(workload, self.module.get_inputs))

    def tensors(self, workload: str) -> dict[str, torch.Tensor]:
        """Freshly drawn input tensors by name. Raises ProblemError for a number that `SCALARS` does not have."""
        import torch

        names, given = self.input_names, self.inputs(workload)
        needed = sum(it.default is it.empty for it in self.parameters.values())
        if not needed <= len(given) <= len(names):
            raise ProblemError(
                f"{self._place(self.module.get_inputs)}: get_inputs gives {len(given)} inputs, "
                f"forward takes {len(names)}: {', '.join(names) or 'none'}",
                hint="make the two agree",
            )
        named = dict(zip(names, given, strict=False))  # what is not given has a default
        for name, value in named.items():
            if not isinstance(value, torch.Tensor) and self.problem.scalars.get(name) != value:
                raise ProblemError(
                    f"{self._place(self.module.get_inputs)}: get_inputs gives {value!r} for {name}",
                    hint=f"declare SCALARS = {{{name!r}: {value!r}}}, or give a tensor",
                )
        return {name: value for name, value in named.items() if isinstance(value, torch.Tensor)}

    def model(self, workload: str) -> torch.nn.Module:
        """A freshly initialised module in evaluation mode, weights in float32."""
        model: torch.nn.Module = self._at(
            workload, lambda name: self.module.Model(*self.module.get_init_inputs(name)).eval()
        )
        return model

    def _place(self, function: Callable[..., object]) -> str:
        """`DIR/reference.py:30`, the first line of a function of it."""
        code = getattr(function, "__code__", None)
        return f"{self.problem.reference_path}:{code.co_firstlineno}" if code else str(self.problem.reference_path)

    def _at(self, workload: str, function: Callable[[str], Result]) -> Result:
        if workload not in self.problem.workloads:
            declared = ", ".join(self.problem.workloads) or "none"
            raise ProblemError(f"{self.problem.slug} declares no size {workload}", hint=f"its sizes are {declared}")
        return blaming(self.problem, lambda: function(str(workload)))


def load_reference(problem: Problem) -> Reference:
    """Execute `reference.py` in a fresh module that nothing else can import; its sizes and scalars are the problem's.

    Raises ProblemError when there is none, it fails, or it lacks `Model`, `get_inputs` or `get_init_inputs`.
    """
    problem.require_reference()
    path = problem.reference_path
    module = ModuleType(f"reference_{problem.slug}")
    module.__file__ = str(path)
    # Not importlib: it would leave a __pycache__ in directories that may be read-only or a user's own.
    blaming(problem, lambda: _execute(problem, module))
    missing = [name for name in ("Model", "get_inputs", "get_init_inputs") if name not in module.__dict__]
    if missing:
        raise ProblemError(f"{path} does not define {', '.join(missing)}", hint="define them as KernelBench does")
    module.__dict__["SIZES"] = {str(workload): dict(extents) for workload, extents in problem.workloads.items()}
    return Reference(problem, module)


def _execute(problem: Problem, module: ModuleType) -> None:
    path = problem.reference_path
    tree = _with_scalars(parse_python(read_source(path), str(path)), problem.scalars)
    code = compile(tree, str(path), "exec", dont_inherit=True)  # this file's `annotations` are not the problem's
    with _EXECUTING:
        sys.modules[module.__name__] = module  # where a dataclass looks up its annotations
        try:
            exec(code, module.__dict__)
        finally:
            sys.modules.pop(module.__name__, None)


def _with_scalars(tree: ast.Module, scalars: Mapping[str, float]) -> ast.Module:
    """The module with other values in its literal `SCALARS`: defaults of arguments read it while it is executed."""
    for statement in tree.body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Dict):
            continue
        if [getattr(target, "id", None) for target in statement.targets] != ["SCALARS"]:
            continue
        table = statement.value
        for place, (key, declared) in enumerate(zip(table.keys, table.values, strict=True)):
            if not isinstance(key, ast.Constant) or ast.literal_eval(declared) == scalars.get(str(key.value)):
                continue
            table.values[place] = ast.copy_location(ast.Constant(scalars[str(key.value)]), declared)
    return ast.fix_missing_locations(tree)


def results(problem: Problem, *, wide: bool = False) -> tuple[torch.Tensor, ...]:
    """Outputs of the cheap size in float32, or float64, for values of a fixed seed. Raises ProblemError."""
    import torch

    reference = load_reference(problem)
    with TORCH, torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        model, inputs = reference.model(problem.cheap_workload), reference.tensors(problem.cheap_workload)
        if not wide:
            return blaming(problem, lambda: run_model(problem, model, inputs))
        model = model.double()
        inputs = {name: value.double() if value.is_floating_point() else value for name, value in inputs.items()}
        usual = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            return blaming(problem, lambda: run_model(problem, model, inputs))
        finally:
            torch.set_default_dtype(usual)


def multiply_adds(problem: Problem) -> int:
    """Of products and convolutions at the cheap size, counted while the reference runs. Raises ProblemError.

    It runs in float64, as for a judge: torch refuses shapes there that it takes in float32, whose layers end up empty.
    """
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        results(problem, wide=True)
    return int(counter.get_total_flops()) // 2


def tensor_specs(problem: Problem, workload: str, precision: Precision) -> tuple[TensorSpec, ...]:
    """The tensors that cross the launcher: output, inputs, weights, in the launcher's order.

    Shapes come from running the reference on torch's `meta` device, which allocates no elements.
    Raises ProblemError.
    """
    named = _tensors_of(problem, workload, reference_digest(problem))
    _check_names(problem, [name for name, _, _ in named])
    given = [[name for name, kind, _ in named if kind is role] for role in (TensorRole.INPUT, TensorRole.WEIGHT)]
    _check_driver(problem, *given)
    return tuple(
        TensorSpec(name, role, _stored_dtype(problem, name, tensor, precision), tuple(tensor.shape))
        for name, role, tensor in named
    )


@lru_cache(maxsize=512)
def _tensors_of(problem: Problem, workload: str, digest: str) -> tuple[tuple[str, TensorRole, torch.Tensor], ...]:
    """Tensors without memory, of all that cross the launcher. Every input set asks, and a hash takes a second here.

    Args:
        problem: its reference is run.
        workload: at this size.
        digest: of the file, which may change between two calls.
    """
    from kernelblaster.problems.shape_only import shapes_only

    reference = load_reference(problem)
    with TORCH, shapes_only():
        model, inputs = reference.model(workload), reference.tensors(workload)
        outputs = blaming(problem, lambda: run_model(problem, model, inputs))
    named = [(name, TensorRole.OUTPUT, tensor) for name, tensor in zip(problem.outputs, outputs, strict=True)]
    named += [(name, TensorRole.INPUT, tensor) for name, tensor in inputs.items()]
    return (*named, *((name, TensorRole.WEIGHT, tensor) for name, tensor in weights_of(model).items()))


def weights_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers that are passed to the launcher, in order.

    Not batch normalisation's call counters; of names that are tied to one tensor the first.
    """
    first = first_names(model)
    state = model.state_dict()
    return {name: state[name] for name in state if first[name] == name and not name.endswith(_COUNTER)}


def first_names(model: torch.nn.Module) -> dict[str, str]:
    """Each name of a module's state, and the first one that is tied to the same tensor: mostly itself."""
    kept = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
    tensors = {name: id(tensor) for name, tensor in kept}
    first: dict[int, str] = {}
    return {name: first.setdefault(tensors[name], name) if name in tensors else name for name in model.state_dict()}


def run_model(problem: Problem, model: torch.nn.Module, inputs: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Outputs of a problem's module for named inputs. Raises ProblemError as `outputs_of`."""
    return outputs_of(problem, model(*arguments(problem, model, inputs)))


def outputs_of(problem: Problem, returned: object) -> tuple[torch.Tensor, ...]:
    """What a module returned, in the order of `Problem.outputs`. Raises ProblemError for other than a tensor each."""
    import torch

    outputs: Sequence[object] = returned if isinstance(returned, tuple | list) else (returned,)
    tensors = [output for output in outputs if isinstance(output, torch.Tensor)]
    if len(tensors) < len(outputs):
        kinds = ", ".join(type(output).__name__ for output in outputs)
        raise ProblemError(f"{problem.slug} returns {kinds}", hint="return one tensor, or a tuple of tensors")
    if len(outputs) != len(problem.outputs):
        raise ProblemError(
            f"{problem.slug} returns {len(outputs)} tensors and names {', '.join(problem.outputs)}",
            hint='name each in reference.py: OUTPUTS = ("values", "indices")',
        )
    return tuple(tensors)


def arguments(problem: Problem, model: torch.nn.Module, inputs: Mapping[str, torch.Tensor]) -> list[Any]:
    """What forward takes, in order: input tensors, and numbers that are among the problem's scalars."""
    names = passed_names(inspect.signature(model.forward).parameters, {*inputs, *problem.scalars})
    return [inputs[name] if name in inputs else problem.scalars[name] for name in names]


def passed_names(parameters: Mapping[str, inspect.Parameter], known: Collection[str]) -> list[str]:
    """The parameters of forward that are passed: all up to the first that has a default and is not known."""
    names = list(parameters)
    left = (at for at, it in enumerate(parameters.values()) if it.name not in known and it.default is not it.empty)
    return names[: next(left, len(names))]


def _check_names(problem: Problem, names: Sequence[str]) -> None:
    """Raise ProblemError when two tensors share a name, or a declaration is of no tensor."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ProblemError(f"{', '.join(twice)} of {problem.slug} names two tensors", hint="rename one of them")
    tables: Mapping[str, Collection[str]] = {
        "DTYPES": problem.dtypes,
        "INDICES": {source.tensor for source in problem.indices.values()},
        "RANGES": problem.ranges,
        "KEPT": problem.kept,
        "PARTLY_READ": problem.partly_read,
    }
    for table, named in tables.items():
        unknown = sorted(set(named) - set(names))
        if unknown:
            raise ProblemError(
                f"{table} of {problem.slug} has the name {unknown[0]}", hint=f"its tensors are {', '.join(names)}"
            )


def _check_driver(problem: Problem, inputs: Collection[str], weights: Collection[str]) -> None:
    """Raise ProblemError when the driver asks for a tensor that does not exist."""
    check_names(problem.driver_path, read_source(problem.driver_path), {"input": inputs, "weight": weights})


def _stored_dtype(problem: Problem, name: str, tensor: torch.Tensor, precision: Precision) -> DType:
    """How the launcher receives a tensor: as it is pinned, floating-point ones in the run's precision, others as is."""
    pinned = problem.dtypes.get(name)
    if pinned is not None:
        if pinned.is_floating_point is not tensor.dtype.is_floating_point:
            raise ProblemError(
                f"{name} of {problem.slug} is {tensor.dtype}, and pinned to {pinned}", hint="pin it to a like type"
            )
        return pinned
    if tensor.dtype.is_floating_point:
        return precision.dtype
    try:
        return DType(str(tensor.dtype).removeprefix("torch."))
    except ValueError:
        raise ProblemError(
            f"{name} of {problem.slug} is {tensor.dtype}",
            hint="use floating point, int64, int32, int16, int8, uint8 or bool",
        ) from None


def blaming(problem: Problem, work: Callable[[], Result]) -> Result:
    """Run code of a problem. What it raises, or that it takes for ever, is a ProblemError that names its file.

    An interruption by the person is none of the problem's, and goes on.
    """
    try:
        return within_time(problem, work)
    except ProblemError:
        raise
    except Exception as error:
        place = place_in(problem.reference_path, error)
        # The text of a SyntaxError repeats where it is.
        text = " ".join(((error.msg or "") if isinstance(error, SyntaxError) else str(error)).split())
        raise ProblemError(f"{place}: {type(error).__name__}: {text}", hint="correct the file") from error
