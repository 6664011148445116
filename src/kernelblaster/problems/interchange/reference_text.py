"""`reference.py` for an imported definition: its own reference, and below it what a problem's reference declares.

A reference that binds names which a problem's reference declares itself, as those that KernelBlaster exports do, is
kept as text and executed in a namespace of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from string import Template

from kernelblaster.errors import ProblemError
from kernelblaster.problems.definition import AxisConst, AxisExpr, AxisVar, Definition, TensorType
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.families import family_of_source
from kernelblaster.problems.interchange.signature import output_names, size_parameters, whole_numbers
from kernelblaster.problems.interchange.sizes import WorkloadSizes

RUN = "run"
_OURS = frozenset({"SIZES", "SCALARS", "OUTPUTS", "DTYPES", "INDICES", "OP_FAMILY", "Model", "get_inputs"})
_RESERVED = _OURS | {"get_init_inputs", "_axes", "_numbers", "_namespace", "_DEFINITION"}
_MOST_INTEGER = 100
_FIXED_WIDTH = frozenset({DType.INT64, DType.INT32, DType.INT16, DType.INT8, DType.UINT8})
_TAIL = Template('''

# ---- The definition's own reference ends here; what follows is how KernelBlaster runs it.
import torch

$declarations


def _axes(_size: str) -> dict[str, int]:
    """Every axis of a size."""
    _given = SIZES[_size]
$axes
    return {$axis_names}


def _numbers(size: str) -> dict[str, float]:
    """Inputs that are numbers."""
    return {$numbers}


class Model(torch.nn.Module):
    """Runs the definition's reference."""

    def __init__(self, numbers: dict[str, float]) -> None:
        super().__init__()
        self.numbers = numbers

    def forward(self, $tensors):
        """Outputs in the definition's order."""
        returned = $call
        if isinstance(returned, dict):
            returned = tuple(returned[name] for name in $outputs)
        if isinstance(returned, (tuple, list)) and len(returned) == 1:
            return returned[0]
        return returned


def get_inputs(size: str = $default) -> list[torch.Tensor]:
    """Input tensors of one size, in the definition's order."""
    a = _axes(size)
$drawing


def get_init_inputs(size: str = $default) -> list:
    """Arguments of `Model`."""
    return [_numbers(size)]
''')


def reference_source(definition: Definition, workloads: WorkloadSizes) -> str:
    """Text of `reference.py`. Raises ProblemError for a reference that cannot be run as it is."""
    parameters = _run_parameters(definition)
    tensors = [name for name, one in definition.inputs.items() if not one.is_scalar]
    tail = _TAIL.substitute(
        declarations="\n".join(_declarations(definition, workloads)),
        axes="\n".join(f"    {name} = {_extent(definition, name)}" for name in _ordered_axes(definition)),
        axis_names=", ".join(f'"{name}": {name}' for name in definition.axes),
        numbers=", ".join(_numbers(definition)),
        tensors=", ".join(tensors),
        call=_call(definition, parameters),
        outputs=repr(tuple(definition.outputs)),
        default=repr(next(iter(workloads.sizes))),
        drawing="\n".join(_drawing(definition, workloads)),
    )
    return _own_part(definition) + tail


def _own_part(definition: Definition) -> str:
    """The definition's reference so that `run` is there to be called."""
    text = definition.reference.rstrip()
    if not _defined(ast.parse(text).body) & _RESERVED:
        return text
    lines = "".join(f"    {line!r}\n" for line in text.splitlines(keepends=True))
    taken = [RUN, *([definition.custom_inputs_entrypoint] if definition.custom_inputs_entrypoint else [])]
    names = "".join(f'{name} = _namespace["{name}"]\n' for name in taken)
    return f"_DEFINITION = (\n{lines})\n_namespace = {{}}\nexec(_DEFINITION, _namespace)\n{names}".rstrip()


def _run_parameters(definition: Definition) -> list[str]:
    """Names of the parameters of `run`. Raises ProblemError."""
    try:
        body = ast.parse(definition.reference).body
    except (SyntaxError, ValueError) as error:
        raise ProblemError(
            f"the reference of {definition.name} is not valid Python: {error}", hint="correct the definition"
        ) from error
    entry = definition.custom_inputs_entrypoint
    if entry is not None and entry not in _defined(body):
        raise ProblemError(
            f"the reference of {definition.name} defines no {entry}, which is to draw its inputs", hint="define it"
        )
    run = next((node for node in reversed(body) if isinstance(node, ast.FunctionDef) and node.name == RUN), None)
    if run is None:
        raise ProblemError(f"the reference of {definition.name} defines no function {RUN}", hint=f"define {RUN}")
    parameters = [argument.arg for argument in (*run.args.posonlyargs, *run.args.args, *run.args.kwonlyargs)]
    if not set(definition.inputs) <= set(parameters) and len(parameters) != len(definition.inputs):
        raise ProblemError(
            f"{RUN} of {definition.name} takes {', '.join(parameters)}, the inputs are {', '.join(definition.inputs)}",
            hint="make the two agree",
        )
    return parameters


def _defined(body: list[ast.stmt]) -> set[str]:
    """Names that statements at the top of a module bind."""
    names = set()
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(statement.name)
        elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
            names |= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and _is_stored(node)}
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in statement.names}
    return names


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _declarations(definition: Definition, workloads: WorkloadSizes) -> Iterator[str]:
    yield f"SIZES = {_table(workloads)}"
    if workloads.scalars:
        yield f"SCALARS = {dict(workloads.scalars)!r}"
    if len(definition.outputs) > 1:
        yield f"OUTPUTS = {tuple(definition.outputs)!r}"
    called = dict(zip(definition.outputs, output_names(definition), strict=True))
    tensors = {**{called[name]: one for name, one in definition.outputs.items()}, **definition.inputs}
    pinned = {name: str(one.dtype) for name, one in tensors.items() if not one.is_scalar}
    yield f"DTYPES = {pinned!r}"
    yield f'OP_FAMILY = "{_family(definition)}"'


def _table(workloads: WorkloadSizes) -> str:
    rows = "".join(f"    {name!r}: {dict(parameters)!r},\n" for name, parameters in workloads.sizes.items())
    return f"{{\n{rows}}}"


def _family(definition: Definition) -> str:
    """The operator family, read off `run` as it is read off a module's `forward`."""
    functions = [node for node in ast.parse(definition.reference).body if isinstance(node, ast.FunctionDef)]
    run = next(node for node in reversed(functions) if node.name == RUN)
    body = ast.FunctionDef(name="forward", args=run.args, body=run.body, decorator_list=[], lineno=1, col_offset=0)
    model = ast.ClassDef(name="Model", bases=[], keywords=[], body=[body], decorator_list=[])
    return str(family_of_source(ast.unparse(ast.Module(body=[model], type_ignores=[]))))


def _ordered_axes(definition: Definition) -> list[str]:
    """Axes, each after those it is derived from."""
    plain = [name for name in definition.axes if name not in definition.expressions]
    return [*plain, *definition.derived_axes]


def _extent(definition: Definition, name: str) -> str:
    axis = definition.axes[name]
    if isinstance(axis, AxisExpr):
        return f"int({axis.expression})"
    if isinstance(axis, AxisVar) or name in size_parameters(definition):
        return f'_given["{name}"]'
    assert isinstance(axis, AxisConst)
    return str(axis.value)


def _numbers(definition: Definition) -> Iterator[str]:
    whole = whole_numbers(definition)
    for name in definition.scalars:
        if name not in whole:
            yield f'"{name}": SCALARS["{name}"]'
        elif definition.inputs[name].dtype is DType.BOOL:
            yield f'"{name}": bool(SIZES[size]["{name}"])'
        else:
            yield f'"{name}": SIZES[size]["{name}"]'


def _call(definition: Definition, parameters: list[str]) -> str:
    by_name = set(definition.inputs) <= set(parameters)
    given = [f'self.numbers["{name}"]' if one.is_scalar else name for name, one in definition.inputs.items()]
    if by_name:
        given = [f"{name}={value}" for name, value in zip(definition.inputs, given, strict=True)]
    return f"{RUN}({', '.join(given)})"


def _drawing(definition: Definition, workloads: WorkloadSizes) -> Iterator[str]:
    tensors = {name: one for name, one in definition.inputs.items() if not one.is_scalar}
    if workloads.custom:
        yield f"    if size in {sorted(workloads.custom)!r}:"
        drawing = f"{definition.custom_inputs_entrypoint}({{**a, **_numbers(size)}}, torch.get_default_device())"
        yield f"        drawn = {drawing}"
        yield f"        return [drawn[name] for name in {tuple(tensors)!r}]"
    yield "    return ["
    for name, tensor in tensors.items():
        yield f"        {_drawn(tensor)},  # {name}"
    yield "    ]"


def _drawn(tensor: TensorType) -> str:
    shape = ", ".join(f'a["{axis}"]' for axis in tensor.shape or ()) + ("," if len(tensor.shape or ()) == 1 else "")
    if tensor.dtype is DType.BOOL:
        return f"torch.rand(({shape})) < 0.5"
    if tensor.dtype in _FIXED_WIDTH:
        return f"torch.randint(0, {_MOST_INTEGER}, ({shape}), dtype=torch.{tensor.dtype})"
    return f"torch.randn(({shape}))"
