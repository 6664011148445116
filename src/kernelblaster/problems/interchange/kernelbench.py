"""A KernelBench module (`Model`, `get_inputs()`, `get_init_inputs()`) as a problem directory without a start.

Whole numbers that the module assigns at its top level become parameters of the launcher, fractions its scalars; both
functions read them at the size they are asked for, and what the top level computes from them follows. What is fixed
when the module is imported (default arguments, bodies of classes) stays a constant. Weights are the tensors of
`state_dict`. The module's own size is `full`; `small` halves its parameters as far as the module allows, and is left
out where nothing cheap to check comes of that: then the module is judged at its own size.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernelblaster.errors import ProblemError, was_interrupted
from kernelblaster.problems.determinism import require_determinism
from kernelblaster.problems.interchange.calling import in_order, require_order
from kernelblaster.problems.interchange.declared_sizes import with_own_names
from kernelblaster.problems.interchange.idle_numbers import without_idle_numbers
from kernelblaster.problems.interchange.literal_extents import Shapes, with_literal_extents
from kernelblaster.problems.interchange.module_faults import fault_of_source
from kernelblaster.problems.interchange.module_files import launcher_of, write_reference
from kernelblaster.problems.interchange.module_text import ModuleText, read_module
from kernelblaster.problems.interchange.plain_forward import constants, flat, is_flat, plain_forward
from kernelblaster.problems.interchange.signature import driver_source
from kernelblaster.problems.interchange.whole_torch import import_torch
from kernelblaster.problems.loader import identify, load_problem
from kernelblaster.problems.problem import OUTPUT, Precision, Problem, StandardWorkload
from kernelblaster.problems.reference import (
    TORCH,
    Reference,
    blaming,
    load_reference,
    results,
    tensor_specs,
    weights_of,
)
from kernelblaster.problems.undeclared_extents import undeclared_extents
from kernelblaster.storage.atomic import write_atomically
from kernelblaster.storage.bounded_io import read_source

if TYPE_CHECKING:
    import torch

FULL, SMALL = StandardWorkload.FULL, StandardWorkload.SMALL
CHEAP_ELEMENTS, CHEAP_OPERATIONS = 1 << 18, 1 << 26
"""What `small` shall have: elements of all tensors together, operations of products and convolutions."""
LARGE = 16.0
"""Times as much it may not have."""
AFFORDABLE = 64.0
"""Beyond these times as much a module is not run at all when it is imported, but for its shapes."""
AFFORDABLE_BYTES = 1 << 30
"""Nor beyond this memory, what it computes in between included."""
SMALLEST = 16
"""Parameters are not halved below this: windows, strides and groups are no extents."""
LEAST = 4
"""Where that leaves a multiple of what is cheap, parameters are halved down to this."""
_HALVINGS = 80
_TOLD, _LONGEST = 3, 160
"""Numbers that are told of where there is no `small`, and characters of why each is of no use."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Run:
    """One run of a module on torch's meta device, with its arguments by name and its floating-point operations."""

    reference: Reference
    model: torch.nn.Module
    given: Mapping[str, object]
    returned: object
    operations: int


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


def import_kernelbench(source: Path, parent: Path, name: str | None = None) -> Problem:
    """Make `<parent>/<name>/` with `reference.py` and `driver.cpp`, and load it; made again it is the same.

    `name`: that of the file if None. Raises ProblemError where the file is no KernelBench module, or holds what a
    problem cannot have.
    """
    try:
        text = read_source(source)
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemError(f"{source} cannot be read: {error}", hint="give a KernelBench file") from error
    text = with_own_names(source, text)
    module = read_module(source, text)
    import_torch()
    directory = parent.resolve() / re.sub(r"[^A-Za-z0-9_.-]+", "_", name or source.stem)
    try:
        return _made(source, text, module, directory)
    except ProblemError as error:
        if was_interrupted(error):
            raise KeyboardInterrupt from error
        raise fault_of_source(error, source, module, directory / "reference.py") from error


def _made(source: Path, text: str, module: ModuleText, directory: Path) -> Problem:
    ordered = in_order(module, _draft(module, directory))
    draft = _draft(ordered(module), directory)
    require_order(draft)
    _run(draft)  # what fails is told of the module as it is

    def run(other: ModuleText, extents: Mapping[str, int]) -> Shapes | None:
        try:
            return _shapes(_run(_draft(ordered(other), directory, extents)))
        except ProblemError:
            return None

    bounds = module.parameters.keys() - without_idle_numbers(module, draft).parameters.keys()
    named = with_literal_extents(source, text, run, module.parameters, sorted(bounds))
    if named is not None:
        try:
            problem = _finished(source, ordered(named), directory)
            _require_elsewhere(problem)
            return problem
        except ProblemError as error:
            # Values may have to agree with an extent, as indices do with a table's: then what is written out stays.
            _log.debug("%s: its literals stay constants: %s", source, error)
    return _finished(source, ordered(module), directory)


def _draft(module: ModuleText, directory: Path, extents: Mapping[str, int] | None = None) -> Problem:
    """The problem at the module's own size alone, or at one that has other extents."""
    identity, known_as = identify(directory)
    full = {**module.parameters, **(extents or {})}
    draft = Problem(identity, known_as, directory, {FULL: full}, dict(module.scalars))
    write_reference(draft, module.text)
    return draft


def _finished(source: Path, module: ModuleText, directory: Path) -> Problem:
    module = without_idle_numbers(module, _draft(module, directory))
    draft = _draft(module, directory)
    run = _run(draft)
    text = _with_plain_forward(module.text, run)
    if text != module.text:
        module = replace(module, text=text)
        write_reference(draft, text)
        run = _run(draft)
    tensors = _tensors(run)
    outputs = (OUTPUT,) if tensors.outputs == 1 else tuple(f"{OUTPUT}_{at}" for at in range(tensors.outputs))
    module = _with_numbers(source, module, tensors, outputs)
    draft = replace(draft, workloads={FULL: dict(module.parameters)}, scalars=dict(module.scalars), outputs=outputs)
    sizes = _sizes(source, module, draft)
    signature = launcher_of(outputs, tensors.inputs, tensors.weights, module.parameters, module.scalars)
    write_atomically(draft.driver_path, driver_source(source.name, signature))
    write_reference(replace(draft, workloads=sizes), module.text)
    return _judged(load_problem(directory))


def _sizes(source: Path, module: ModuleText, draft: Problem) -> dict[str, dict[str, int]]:
    """The cheap one first. Raises ProblemError where one that is declared gives a number that the module has not."""
    unknown = {name for extents in module.sizes.values() for name in extents} - set(module.parameters)
    if unknown:
        raise ProblemError(
            f"{source}: SIZES gives {', '.join(sorted(unknown))}, which the launcher does not get",
            hint=f"its extents are {', '.join(module.parameters)}; assign others at the file's top level",
        )
    full = {**module.parameters, **module.sizes.get(FULL, {})}
    declared = {name: {**full, **extents} for name, extents in module.sizes.items()}
    small = declared.get(SMALL) or _smaller(draft)
    return {**({SMALL: small} if small else {}), **declared, FULL: full}


def size_notes(problem: Problem) -> Iterator[str]:
    """That a module is dear to check and has no cheap size, why, and how it gets one."""
    full = problem.workloads[FULL]
    cost = _cost(problem, full)
    if SMALL in problem.workloads or cost is None or cost <= LARGE:
        return
    becomes = {name: _halved_once(problem, name, cost) for name in sorted(full, key=lambda name: -full[name])[:_TOLD]}
    why = "; ".join(f"with {name} halved it {told}" for name, told in becomes.items())
    example = {SMALL: {max(full, key=lambda name: full[name]): SMALLEST}}
    yield (
        f"there is no size small: the module's own takes {cost:,.0f} times what is cheap to check, and numbers lead to "
        f"none ({why}); assign extents at the file's top level and read them in get_inputs and get_init_inputs, or "
        f"declare a size of the numbers there, such as SIZES = {json.dumps(example)}"
    )


def _halved_once(problem: Problem, name: str, cost: float) -> str:
    """What a module does with a number halved, in words."""
    full = problem.workloads[FULL]
    try:
        found = _tensors(_run(replace(problem, workloads={FULL: {**full, name: full[name] // 2}})))
    except ProblemError as error:
        return f"fails: {error.message.removeprefix(str(problem.reference_path)).lstrip(':0123456789 ')[:_LONGEST]}"
    return f"takes {found.cost:,.0f} times that" if found.cost < cost else "takes no less"


def _judged(problem: Problem) -> Problem:
    """The problem. Raises ProblemError where its tensors cannot be judged, at any size."""
    for size in problem.workloads:
        tensor_specs(problem, size, Precision.FP32)
    if _is_affordable(problem):
        require_determinism(problem)
    return problem


def _require_elsewhere(problem: Problem) -> None:
    """Raise ProblemError where it does not run at extents that no size declares: kernels are judged there, too."""
    other = undeclared_extents(problem) if _is_affordable(problem) else None
    if other is not None and _is_affordable(other):
        results(other)


def _is_affordable(problem: Problem) -> bool:
    """Whether the cheap size may be run here."""
    from kernelblaster.problems.interchange.peak_memory import peak_bytes

    size = problem.cheap_workload
    cost = _cost(problem, problem.workloads[size])
    return cost is not None and cost <= AFFORDABLE and peak_bytes(problem, size) <= AFFORDABLE_BYTES


def _run(problem: Problem) -> _Run:
    """Raises ProblemError where the module does not run on the meta device."""
    from torch.utils.flop_counter import FlopCounterMode

    from kernelblaster.problems.shape_only import shapes_only

    reference = load_reference(problem)
    counter = FlopCounterMode(display=False)
    with TORCH, shapes_only():
        model, given = reference.model(FULL), reference.inputs(FULL)
        with counter:
            returned = blaming(problem, lambda: model(*given))
    named = dict(zip(reference.input_names, given, strict=False))
    return _Run(reference, model, named, returned, counter.get_total_flops())


def _shapes(run: _Run) -> Shapes:
    import torch

    return Shapes(
        inputs={name: tuple(value.shape) for name, value in run.given.items() if isinstance(value, torch.Tensor)},
        weights={name: tuple(value.shape) for name, value in weights_of(run.model).items()},
        outputs=tuple(tuple(value.shape) for value in flat(run.returned) if isinstance(value, torch.Tensor)),
    )


def _with_plain_forward(text: str, run: _Run) -> str:
    """The module's text, and below it what makes its forward one of tensors and fractions where it is not.

    Raises ProblemError where that is not possible.
    """
    fixed = constants(run.given.values())
    for given in _given_at_other_sizes(run.reference.problem) if fixed else ():
        fixed = {place: value for place, value in fixed.items() if given[place : place + 1] == [value]}
    left = {name: value for place, (name, value) in enumerate(run.given.items()) if place not in fixed}
    _require_passable(run.reference, left, list(flat(run.returned)) or [run.returned])
    nested, rounded = not is_flat(run.returned), _keeps_fp32(run)
    if not (fixed or nested or rounded):
        return text
    return plain_forward(text, list(run.given), fixed, nested=nested, rounded=rounded)


def _keeps_fp32(run: _Run) -> bool:
    """Whether an output is in fp32 where inputs and weights are in fp16; a kernel stores what the run is in."""
    import torch

    from kernelblaster.problems.shape_only import shapes_only

    def halved(value: object) -> object:
        return value.half() if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    with TORCH, shapes_only():
        model = run.reference.model(FULL).half()
        given = [halved(value) for value in run.reference.inputs(FULL)]
        usual = torch.get_default_dtype()
        torch.set_default_dtype(torch.half)
        try:
            returned = model(*given)
        except (RuntimeError, TypeError, ValueError):
            return False  # it has no fp16, which whoever runs it so is told
        finally:
            torch.set_default_dtype(usual)
    return any(torch.is_tensor(one) and one.dtype is torch.float32 for one in flat(returned))


def _given_at_other_sizes(problem: Problem) -> Iterator[list[object]]:
    """What `get_inputs` gives where one number is larger; some modules do not draw their inputs with all of them."""
    from kernelblaster.problems.shape_only import shapes_only

    for name, extent in problem.workloads[FULL].items():
        for other in (extent + 1, 2 * extent):
            sized = replace(problem, workloads={FULL: {**problem.workloads[FULL], name: other}})
            try:
                with TORCH, shapes_only():
                    given = load_reference(sized).inputs(FULL)
            except ProblemError:
                continue
            yield given


def _tensors(run: _Run) -> _Tensors:
    """Raises ProblemError where there is anything else."""
    import torch

    tensors = {name: value for name, value in run.given.items() if isinstance(value, torch.Tensor)}
    numbers = {name: value for name, value in run.given.items() if isinstance(value, float)}
    every = run.returned if isinstance(run.returned, tuple | list) else (run.returned,)
    _require_passable(run.reference, run.given, every)
    weights = weights_of(run.model)
    together = [*tensors.values(), *weights.values(), *every]
    return _Tensors(
        inputs={name: tuple(value.shape) for name, value in tensors.items()},
        numbers=numbers,
        weights=tuple(weights),
        outputs=len(every),
        elements=sum(tensor.numel() for tensor in together),
        operations=run.operations,
    )


def _require_passable(reference: Reference, given: Mapping[str, object], returned: Iterable[object]) -> None:
    """Raise ProblemError unless inputs are tensors and fractions, and outputs are tensors."""
    import torch

    odd = [(name, value) for name, value in given.items() if not isinstance(value, float | torch.Tensor)]
    if odd:
        (name, value), *_ = odd
        place = _place(reference, reference.module.get_inputs)
        raise ProblemError(
            f"{place}: get_inputs gives {_kind(value)} for the input {name}",
            hint=f"leave {name} out: give it a default in forward, or assign it at the file's top level"
            if value is None or isinstance(value, int | str)
            else "give tensors and fractions alone, each as an argument of forward",
        )
    kinds = [_kind(one) for one in returned if not isinstance(one, torch.Tensor)]
    if kinds:
        raise ProblemError(
            f"{_place(reference, reference.module.Model.forward)}: forward returns {kinds[0]} as an output",
            hint="return tensors alone",
        )


def _kind(value: object) -> str:
    return repr(value) if value is None or isinstance(value, int) else f"a {type(value).__name__}"


def _place(reference: Reference, function: Callable[..., object]) -> str:
    """File and line of a function of the reference; the file alone of one that lies elsewhere."""
    path, code = reference.problem.reference_path, getattr(function, "__code__", None)
    return f"{path}:{code.co_firstlineno}" if code and code.co_filename == str(path) else str(path)


def _with_numbers(source: Path, module: ModuleText, tensors: _Tensors, outputs: Iterable[str]) -> ModuleText:
    """With the fractions that forward takes; a module without a parameter gets extents of its first input.

    What is called as an input or an output stays a constant.
    """
    named = {*tensors.inputs, *outputs}
    parameters = {name: value for name, value in module.parameters.items() if name not in named}
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
        return _tensors(_run(replace(problem, workloads={FULL: dict(parameters)}))).cost
    except ProblemError:
        return None
