"""A KernelBench module (`Model`, `get_inputs()`, `get_init_inputs()`) as a problem directory without a start.

Whole numbers that the module assigns at its top level become parameters of the launcher, fractions its scalars; both
functions read them at the size they are asked for. What is fixed when the module is imported (default arguments,
values computed from others) stays a constant. Weights are the tensors of `state_dict`. The module's own size is `full`;
`small` halves its parameters as far as the module allows, and is left out where nothing cheap to check comes of that:
then the module is judged at its own size.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kernelblaster.errors import ProblemError
from kernelblaster.problems.interchange.signature import RESERVED, LauncherSignature, driver_source
from kernelblaster.problems.loader import identify, load_problem
from kernelblaster.problems.problem import OUTPUT, Problem, StandardWorkload
from kernelblaster.problems.python_source import parse_python
from kernelblaster.problems.reference import TORCH, blaming, load_reference, weights_of
from kernelblaster.storage.atomic import write_atomically
from kernelblaster.storage.bounded_io import read_source

FULL, SMALL = StandardWorkload.FULL, StandardWorkload.SMALL
CHEAP_ELEMENTS, CHEAP_OPERATIONS = 1 << 18, 1 << 26
"""What `small` shall have: elements of all tensors together, operations of products and convolutions."""
LARGE = 16.0
"""Times as much it may not have."""
SMALLEST = 16
"""Parameters are not halved below this: windows, strides and groups are no extents."""
LEAST = 4
"""Where that leaves a multiple of what is cheap, parameters are halved down to this."""
MOST_POINTERS = 16
"""More weights than this reach the launcher as one array."""
_HALVINGS = 80
_FUNCTIONS = ("get_inputs", "get_init_inputs")
_TAKES_SIZE = "globals().update(SIZES[size], **SCALARS)"
"""The line that both functions get."""
_MODULE = re.compile(r"(\d+)_(.+)\.py")


@dataclass(frozen=True)
class _Module:
    """What is read off the text.

    Attributes:
        text: of the module, its functions taking a size.
        parameters: whole numbers by name.
        scalars: fractions by name.
    """

    text: str
    parameters: Mapping[str, int]
    scalars: Mapping[str, float]


@dataclass(frozen=True)
class _Tensors:
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


def checkout_modules(root: Path) -> dict[str, Path]:
    """The modules of a checkout of KernelBench, `level1/019_ReLU` -> file; none where it is none.

    They lie in `level1/19_ReLU.py`, below the checkout's root or its directory `KernelBench`.
    """
    for directory in (root, root / "KernelBench"):
        files = [(path, _MODULE.fullmatch(path.name)) for path in sorted(directory.glob("level*/*.py"))]
        found = {f"{path.parent.name}/{int(it[1]):03d}_{it[2]}": path for path, it in files if it is not None}
        if found:
            return dict(sorted(found.items()))
    return {}


def import_kernelbench(source: Path, parent: Path, name: str | None = None) -> Problem:
    """Make `<parent>/<name>/` with `reference.py` and `driver.cpp`, and load it; made again it is the same.

    `name`: that of the file if None. Raises ProblemError where the file is no KernelBench module, or holds what a
    problem cannot have.
    """
    try:
        module = _read(source, read_source(source))
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemError(f"{source} cannot be read: {error}", hint="give a KernelBench file") from error
    directory = parent.resolve() / re.sub(r"[^A-Za-z0-9_.-]+", "_", name or source.stem)
    try:
        return _made(source, module, directory)
    except ProblemError as error:
        raise _of_source(error, source, module, directory) from error


def _made(source: Path, module: _Module, directory: Path) -> Problem:
    identity, known_as = identify(directory)
    draft = Problem(identity, known_as, directory, {FULL: dict(module.parameters)}, dict(module.scalars))
    write_atomically(draft.reference_path, module.text + _declarations({FULL: module.parameters}, module.scalars, ()))
    tensors = _tensors(draft)
    module = _with_numbers(source, module, tensors)
    outputs = (OUTPUT,) if tensors.outputs == 1 else tuple(f"{OUTPUT}_{at}" for at in range(tensors.outputs))
    draft = replace(draft, workloads={FULL: dict(module.parameters)}, scalars=dict(module.scalars), outputs=outputs)
    small = _smaller(draft)
    sizes: dict[str, Mapping[str, int]] = {SMALL: small} if small else {}
    sizes[FULL] = module.parameters
    signature = _signature(module, tensors, outputs)
    write_atomically(draft.driver_path, driver_source(source.name, signature))
    write_atomically(draft.reference_path, module.text + _declarations(sizes, module.scalars, outputs))
    return load_problem(directory)


def _of_source(error: ProblemError, source: Path, module: _Module, directory: Path) -> ProblemError:
    """The error with the file that was given, and its line, in the place of what was made of it."""
    lines = module.text.split("\n")

    def place(found: re.Match[str]) -> str:
        if found["line"] is None:
            return str(source)
        line = int(found["line"])
        return f"{source}:{line - sum(_TAKES_SIZE in one for one in lines[:line])}"

    made = re.compile(rf"{re.escape(str(directory / 'reference.py'))}(:(?P<line>\d+))?")
    return ProblemError(made.sub(place, error.message), hint=error.hint)


def _read(source: Path, text: str) -> _Module:
    try:
        tree = parse_python(text, str(source))
    except (SyntaxError, ValueError) as error:
        raise ProblemError(f"{source} is not valid Python: {error}", hint="correct the file") from error
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    missing = [name for name in ("Model", *_FUNCTIONS) if name not in defined]
    if missing:
        raise ProblemError(
            f"{source} does not define {', '.join(missing)}", hint="give a module such as KernelBench's, or a directory"
        )
    frozen = set(_read_on_import(tree))
    numbers = {name: value for name, value in _numbers(tree) if name not in frozen and name not in RESERVED}
    parameters = {name: value for name, value in numbers.items() if isinstance(value, int) and value >= 0}
    scalars = {name: value for name, value in numbers.items() if isinstance(value, float)}
    return _Module(_taking_sizes(source, tree, text), parameters, scalars)


def _numbers(tree: ast.Module) -> Iterator[tuple[str, int | float]]:
    """Numbers that are assigned once, and to one name, at the top level."""
    targets = [target for node in tree.body for target in _targets(node)]
    pairs: list[tuple[ast.expr, ast.expr]] = []
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(values):
                pairs += zip(names, values, strict=True)
            case ast.Assign(targets=names, value=value):
                pairs += ((name, value) for name in names)
            case ast.AnnAssign(target=name, value=ast.expr() as value):
                pairs.append((name, value))
    for target, value in pairs:
        number = _number(value)
        if isinstance(target, ast.Name) and targets.count(target.id) == 1 and number is not None:
            yield target.id, number


def _number(node: ast.expr) -> int | float | None:
    """What arithmetic on literals comes to; None for anything else."""
    match node:
        case ast.Constant(value=value) if type(value) in (int, float):
            return value  # type: ignore[return-value]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = _number(operand)
            return None if number is None else -number
        case ast.BinOp(left=left, op=ast.Mult() | ast.Add() | ast.Sub() as op, right=right):
            one, other = _number(left), _number(right)
            if one is None or other is None:
                return None
            return one * other if isinstance(op, ast.Mult) else one + other if isinstance(op, ast.Add) else one - other
    return None


def _targets(node: ast.stmt) -> Iterator[str]:
    for inner in ast.walk(node) if not isinstance(node, ast.FunctionDef | ast.ClassDef) else ():
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id


def _read_on_import(tree: ast.Module) -> Iterator[str]:
    """Names that are read while the module is imported: in its statements, and in defaults of functions."""
    parts: list[ast.AST] = [node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            parts += [*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None)]
        if isinstance(node, ast.ClassDef):
            parts += [part for part in node.body if not isinstance(part, ast.FunctionDef)]
    for part in parts:
        for inner in ast.walk(part):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
                yield inner.id


def _taking_sizes(source: Path, tree: ast.Module, text: str) -> str:
    """The text with both functions taking a size, whose numbers they put in the place of the module's own."""
    lines = text.splitlines()
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in _FUNCTIONS]
    for node in sorted(functions, key=lambda function: -function.lineno):
        head = re.fullmatch(rf"def {node.name}\(\s*\)(?P<rest>.*:.*)", lines[node.lineno - 1])
        first = node.body[0]
        if head is None or first.lineno == node.lineno:
            raise ProblemError(
                f"{source}:{node.lineno}: {node.name} takes arguments or stands on one line",
                hint=f"write `def {node.name}():` and its body below",
            )
        lines[node.lineno - 1] = f'def {node.name}(size="{FULL}"){head["rest"]}'
        lines.insert(first.lineno - 1, f"{' ' * first.col_offset}{_TAKES_SIZE}")
    return "\n".join(lines) + "\n\n\n"


def _tensors(problem: Problem) -> _Tensors:
    """Raises ProblemError where the module does not run on the meta device."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from kernelblaster.problems.shape_only import shapes_only

    reference = load_reference(problem)
    counter = FlopCounterMode(display=False)
    with TORCH, shapes_only():
        model, given = reference.model(FULL), reference.inputs(FULL)
        with counter:
            returned = blaming(problem, lambda: model(*given))
    every = returned if isinstance(returned, tuple | list) else (returned,)
    named = dict(zip(reference.input_names, given, strict=False))
    tensors = {name: value for name, value in named.items() if isinstance(value, torch.Tensor)}
    numbers = {name: value for name, value in named.items() if not isinstance(value, torch.Tensor)}
    odd = next((name for name, value in numbers.items() if not isinstance(value, float)), None)
    if odd is not None or not all(isinstance(one, torch.Tensor) for one in every):
        what = "an output" if odd is None else f"the input {odd}"
        raise ProblemError(f"{what} of {problem.slug} is neither a tensor nor a fraction", hint="fix it in the module")
    weights = weights_of(model)
    together = [*tensors.values(), *weights.values(), *every]
    return _Tensors(
        inputs={name: tuple(value.shape) for name, value in tensors.items()},
        numbers=numbers,
        weights=tuple(weights),
        outputs=len(every),
        elements=sum(tensor.numel() for tensor in together),
        operations=counter.get_total_flops(),
    )


def _with_numbers(source: Path, module: _Module, tensors: _Tensors) -> _Module:
    """With the fractions that forward takes; a module without a parameter gets extents of its first input."""
    parameters = {name: value for name, value in module.parameters.items() if name not in tensors.inputs}
    if not parameters:
        name, shape = next(iter(tensors.inputs.items()), ("", ()))
        parameters = {f"{name}_axis_{axis}": extent for axis, extent in enumerate(shape)}
    if not parameters:
        raise ProblemError(f"{source} has no extent that a kernel could be given", hint="give it an input with an axis")
    return replace(module, parameters=parameters, scalars={**module.scalars, **tensors.numbers})


def _smaller(problem: Problem) -> dict[str, int] | None:
    """Parameters of a size that is cheap to check; None where the module allows none."""
    full = problem.workloads[FULL]
    chosen, cost = _halved(problem, dict(full), SMALLEST)
    if cost is not None and cost > 2.0:
        chosen, cost = _halved(problem, chosen, LEAST)
    if chosen == full or cost is None or cost > LARGE:
        return None
    for name in chosen:  # no tile shall divide them
        odd = {**chosen, name: chosen[name] | 1}
        if chosen[name] >= LEAST and odd != chosen and full[name] != chosen[name] and _cost(problem, odd) is not None:
            chosen = odd
    return chosen


def _halved(problem: Problem, chosen: dict[str, int], least: int) -> tuple[dict[str, int], float | None]:
    """The largest parameters halved, none below `least`, until that is cheap or leads no further; and its cost."""
    cost = _cost(problem, chosen)
    stuck: set[str] = set()
    for _ in range(_HALVINGS):
        open_names = [name for name in chosen if name not in stuck and chosen[name] >= 2 * least]
        if cost is None or cost <= 1.0 or not open_names:
            break
        name = max(open_names, key=lambda name: chosen[name])
        halved = {**chosen, name: chosen[name] // 2}
        found = _cost(problem, halved)
        if found is None or found >= cost:
            stuck.add(name)
        else:
            chosen, cost = halved, found
    return chosen, cost


def _cost(problem: Problem, parameters: Mapping[str, int]) -> float | None:
    """Of a check with these parameters; None where the module does not run with them."""
    try:
        return _tensors(replace(problem, workloads={FULL: dict(parameters)})).cost
    except ProblemError:
        return None


def _signature(module: _Module, tensors: _Tensors, outputs: tuple[str, ...]) -> LauncherSignature:
    taken = {*outputs, *tensors.inputs, *module.parameters, *module.scalars}
    many = len(tensors.weights) > MOST_POINTERS
    named = {} if many else {_parameter(name, taken): f'd.weight("{name}")' for name in tensors.weights}
    arguments = {name: f'd.output("{name}")' for name in outputs}
    arguments |= {name: f'd.input("{name}")' for name in tensors.inputs}
    arguments |= {"weights": "d.weights()"} if many else named
    arguments |= {name: f'd.size("{name}")' for name in module.parameters}
    arguments |= {name: f'd.scalar("{name}")' for name in module.scalars}
    types = dict.fromkeys(arguments, "void*") | dict.fromkeys(module.parameters, "int64_t")
    types |= dict.fromkeys(module.scalars, "float") | ({"weights": "void* const*"} if many else {})
    return LauncherSignature(arguments=arguments, types=types, pointers={}, integers={}, floats={})


def _parameter(weight: str, taken: set[str]) -> str:
    """`layers.0.weight` as a name of C++ that nothing else has."""
    name = weight.replace(".", "_")
    while name in taken or name in RESERVED:
        name += "_"
    return name


def _declarations(
    sizes: Mapping[str, Mapping[str, int]], scalars: Mapping[str, float], outputs: tuple[str, ...]
) -> str:
    named = {str(name): dict(parameters) for name, parameters in sizes.items()}
    told = f"SIZES = {named!r}\nSCALARS = {dict(scalars)!r}\n"
    return told if len(outputs) < 2 else f"{told}OUTPUTS = {outputs!r}\n"
