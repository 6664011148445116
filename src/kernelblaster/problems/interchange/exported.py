"""A problem of ours as a bundle: definition and workloads read off its reference, kernels as solutions.

A definition's reference is a function `run` of tensors and numbers; ours is a module. The exported text is ours with a
`run` below it, which makes the module for the extents that it is called with and gives it the weights it is handed.
An imported problem is given back as it came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from string import Template

from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.cuda_source.launcher import LAUNCHER, launcher_declaration
from kernelblaster.cuda_source.lexer import TokenKind, significant_tokens
from kernelblaster.paths import harness_include_dir
from kernelblaster.problems.definition import AxisExpr, AxisVar, Definition
from kernelblaster.problems.describe import describe
from kernelblaster.problems.families import family_of
from kernelblaster.problems.interchange.bundle import ExchangeFormat, ProblemBundle
from kernelblaster.problems.interchange.kept import is_imported, read_kept
from kernelblaster.problems.interchange.signature import launcher_signature
from kernelblaster.problems.interchange.sizes import size_names
from kernelblaster.problems.interchange.start import find_start
from kernelblaster.problems.interchange.trace import Trace
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.solution import BuildSpec, Solution, SourceFile

AUTHOR = "kernelblaster"
KERNEL, BINDING, SCALARS_HEADER = "kernel.cu", "binding.cpp", "kernelblaster/scalar.cuh"
_RUN = Template('''


def run($parameters):
    """The module above on these tensors and numbers."""
    given = [$tensors]
    for size in SIZES:
        with torch.device("meta"):
            if [tuple(one.shape) for one in get_inputs(size)] == [tuple(one.shape) for one in given]:
                break
    else:
        raise ValueError("the problem declares no size with inputs of these shapes")
$scalars
    with torch.device("meta"):
        model = Model(*get_init_inputs(size)).eval()
    with torch.no_grad():
        return torch.func.functional_call(model, {$weights}, tuple(given))
''')
_BINDING = Template("""// Calls the launcher with tensors of PyTorch.
#include <torch/extension.h>

$declaration

static void run($parameters) {
    $launcher($arguments);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("run", &run); }
""")


def bundle_of(problem: Problem, precision: Precision, form: ExchangeFormat) -> ProblemBundle:
    """What there is to export of a problem, but for kernels of ours and their evaluations.

    Raises ProblemError when its reference cannot be run.
    """
    if is_imported(problem.directory):
        return read_kept(problem.directory)
    described = describe(problem, precision)
    definition, names = described.definition, _plain_names(described.definition)
    definition = definition.model_copy(
        update={
            "inputs": {names[name]: one for name, one in definition.inputs.items()},
            "weights": tuple(names[name] for name in definition.weights),
            "op_type": str(family_of(problem.reference_path)),
            "reference": _reference(definition, names, problem),
        }
    )
    workloads = [
        one.model_copy(update={"inputs": {names[name]: source for name, source in one.inputs.items()}})
        for one in described.workloads
    ]
    if form is ExchangeFormat.FLASHINFER:  # which knows no derived axes
        workloads = [one.model_copy(update={"axes": _given(definition, one.axes)}) for one in workloads]
        definition = definition.model_copy(update={"axes": _without_expressions(definition)})
    lines = tuple(Trace(definition=definition.name, workload=one, solution=None, evaluation=None) for one in workloads)
    return ProblemBundle(Definition.from_json(definition.to_json()), lines)


def has_own_start(problem: Problem) -> bool:
    """Whether the starting kernel is one that no import made, and so is in no solution yet."""
    if not problem.init_path.is_file() or not is_imported(problem.directory):
        return problem.init_path.is_file()
    bundle = read_kept(problem.directory)
    made = find_start(bundle.solutions, launcher_signature(bundle.definition))
    return made is None or made.source != problem.init_path.read_text(encoding="utf-8")


def workload_of_size(bundle: ProblemBundle, size: str) -> str | None:
    """Name of the workload that a size of the problem stands for."""
    return next((name for name, own in size_names(bundle.workloads).items() if own == size), None)


def solution_of(
    problem: Problem, bundle: ProblemBundle, source: str, precision: Precision, form: ExchangeFormat, hardware: str
) -> Solution:
    """A kernel of ours as a solution: with a binding to PyTorch where each argument can be read off the tensors."""
    digest = source_digest(source)
    binding = _binding(bundle, problem.driver_path.read_text(encoding="utf-8"))
    files = [SourceFile(path=KERNEL, content=source.replace(f"<{SCALARS_HEADER}>", f'"{SCALARS_HEADER}"'))]
    if files[0].content != source:
        files.append(SourceFile(path=SCALARS_HEADER, content=_scalars_header(precision)))
    if binding is not None:
        files.append(SourceFile(path=BINDING, content=binding))
    written = {"language": "cuda"} if form is ExchangeFormat.FLASHINFER else {"languages": ("cuda_cpp",)}
    spec = {
        **written,
        "target_hardware": (hardware,),
        "entry_point": f"{BINDING}::run" if binding is not None else f"{KERNEL}::{LAUNCHER}",
        "destination_passing_style": True,
        **({"binding": "torch"} if binding is not None else {}),
    }
    return Solution(
        name=f"{bundle.definition.name}_{digest[:12]}",
        definition=bundle.definition.name,
        author=AUTHOR,
        spec=BuildSpec.model_validate(spec),
        sources=tuple(files),
    )


def with_results(bundle: ProblemBundle, solutions: Sequence[Solution], traces: Sequence[Trace]) -> ProblemBundle:
    """The bundle with further solutions and traces; those that are there already are not repeated."""
    there = {one.name for one in bundle.solutions}
    added = tuple(one for one in solutions if one.name not in there)
    return replace(bundle, solutions=bundle.solutions + added, traces=bundle.traces + tuple(traces))


def _plain_names(definition: Definition) -> dict[str, str]:
    """Input -> a name that is one in Python: `ln.weight` becomes `ln_weight`."""
    names: dict[str, str] = {}
    for name in definition.inputs:
        plain = name.replace(".", "_")
        while plain in names.values() or (plain != name and plain in definition.inputs):
            plain += "_"
        names[name] = plain
    return names


def _reference(definition: Definition, names: dict[str, str], problem: Problem) -> str:
    weights = {name: names[name] for name in definition.weights}
    tensors = [
        names[name] for name, one in definition.inputs.items() if name not in definition.weights and not one.is_scalar
    ]
    scalars = [f'    SCALARS["{name}"] = {name}' for name in definition.scalars]
    tail = _RUN.substitute(
        parameters=", ".join(names.values()),
        tensors=", ".join(tensors),
        scalars="\n".join(scalars) or "    # no numbers are passed",
        weights=", ".join(f'"{name}": {plain}' for name, plain in weights.items()),
    )
    return problem.reference_path.read_text(encoding="utf-8").rstrip() + tail


def _given(definition: Definition, axes: dict[str, int]) -> dict[str, int]:
    """Variable and derived axes of a workload."""
    extents = definition.extents(axes)
    return {name: extents[name] for name in (*definition.variable_axes, *definition.expressions)}


def _without_expressions(definition: Definition) -> dict[str, object]:
    return {
        name: AxisVar(type="var", description=axis.expression) if isinstance(axis, AxisExpr) else axis
        for name, axis in definition.axes.items()
    }


def _scalars_header(precision: Precision) -> str:
    header: Path = harness_include_dir() / SCALARS_HEADER
    return f"#define KB_{precision.upper()}\n{header.read_text(encoding='utf-8')}"


def _binding(bundle: ProblemBundle, driver: str) -> str | None:
    """C++ that calls the launcher with tensors; None where the driver passes what no tensor tells."""
    definition = bundle.definition
    passed = _passed(driver)
    if passed is None:
        return None
    names = {name: _tensor(definition, name) for kind, name in passed if kind in ("input", "weight", "output")}
    arguments = []
    for kind, name in passed:
        if kind in ("input", "weight", "output"):
            argument = f"{names[name]}.data_ptr()" if names[name] else None
        elif kind == "scalar":
            argument = f"static_cast<float>({name})" if name in definition.inputs else None
        else:
            argument = _extent(bundle, name)
        if argument is None:
            return None
        arguments.append(argument)
    inputs = [f"{'double' if one.is_scalar else 'torch::Tensor'} {name}" for name, one in definition.inputs.items()]
    return _BINDING.substitute(
        declaration=launcher_declaration(driver),
        parameters=", ".join([*inputs, *(f"torch::Tensor {name}" for name in definition.outputs)]),
        launcher=LAUNCHER,
        arguments=", ".join(arguments),
    )


def _passed(driver: str) -> list[tuple[str, str]] | None:
    """What a driver passes to its launcher: (kind, name) per argument; None when it passes anything else."""
    spelled = significant_tokens(driver)
    calls = [
        at
        for at, token in enumerate(spelled[1:], start=1)
        if token.spelling == LAUNCHER and spelled[at - 1].spelling != "void"
    ]
    if len(calls) != 1:
        return None
    found, at = [], calls[0] + 2
    while at + 6 < len(spelled) and spelled[at].kind is TokenKind.NAME:
        _, dot, kind, opening, name, closing, end = spelled[at : at + 7]
        shape = (dot.spelling, opening.spelling, name.kind, closing.spelling)
        if shape != (".", "(", TokenKind.STRING, ")") or end.spelling not in (",", ")"):
            return None
        found.append((kind.spelling, name.spelling[1:-1]))
        if end.spelling == ")":
            return found
        at += 7
    return None


def _tensor(definition: Definition, name: str) -> str | None:
    """Name of a tensor in the definition, for that in the driver."""
    for known in (name, name.replace(".", "_")):
        if known in definition.inputs or known in definition.outputs:
            return known
    return next(iter(definition.outputs)) if len(definition.outputs) == 1 and name == "output" else None


def _extent(bundle: ProblemBundle, name: str) -> str | None:
    """C++ for an extent: of a tensor that has the axis, or the number that all workloads give."""
    definition = bundle.definition
    if name in definition.inputs:
        return f"static_cast<int64_t>({name})"
    for tensor, one in {**definition.inputs, **definition.outputs}.items():
        if name in (one.shape or ()):
            return f"{tensor}.size({(one.shape or ()).index(name)})"
    values = {definition.extents(line.workload.axes).get(name) for line in bundle.workloads}
    return str(values.pop()) if len(values) == 1 and None not in values else None
