"""A KernelBench module (`Model`, `get_inputs()`, `get_init_inputs()`) as a problem directory without a start.

Whole numbers that the module assigns at its top level become parameters of the launcher, fractions its scalars; both
functions read them at the size they are asked for, and what the top level computes from them follows. What is fixed
when the module is imported (default arguments, bodies of classes) stays a constant. Weights are the tensors of
`state_dict`. The module's own size is `full`; `small` halves its parameters as far as the module allows, and is left
out where nothing cheap to check comes of that: then the module is judged at its own size.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from kernelblaster.errors import ProblemError, was_interrupted
from kernelblaster.problems.interchange.kernelbench.calling import in_order, require_order
from kernelblaster.problems.interchange.kernelbench.declared_sizes import with_own_names
from kernelblaster.problems.interchange.kernelbench.idle_numbers import without_idle_numbers
from kernelblaster.problems.interchange.kernelbench.literal_extents import Shapes, with_literal_extents
from kernelblaster.problems.interchange.kernelbench.meta_run import (
    FULL,
    MetaRun,
    ModuleTensors,
    inputs_for_shapes,
    require_passable,
    run_for_shapes,
    shapes_of,
    tensors_of,
)
from kernelblaster.problems.interchange.kernelbench.module_faults import fault_of_source
from kernelblaster.problems.interchange.kernelbench.module_files import launcher_of, write_reference
from kernelblaster.problems.interchange.kernelbench.module_text import ModuleText, read_module
from kernelblaster.problems.interchange.kernelbench.plain_forward import constants, flat, is_flat, plain_forward
from kernelblaster.problems.interchange.kernelbench.small_size import is_affordable, sizes_of
from kernelblaster.problems.interchange.kernelbench.whole_torch import import_torch
from kernelblaster.problems.interchange.signature import driver_source
from kernelblaster.problems.loader import identify, load_problem
from kernelblaster.problems.problem import OUTPUT, Precision, Problem
from kernelblaster.problems.reference import results, tensor_specs
from kernelblaster.problems.sound_reference import require_sound_reference
from kernelblaster.problems.undeclared_extents import undeclared_extents
from kernelblaster.storage.atomic import write_atomically
from kernelblaster.storage.bounded_io import read_source

_log = logging.getLogger(__name__)


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
    run_for_shapes(draft)  # what fails is told of the module as it is

    def run(other: ModuleText, extents: Mapping[str, int]) -> Shapes | None:
        try:
            return shapes_of(run_for_shapes(_draft(ordered(other), directory, extents)))
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
    run = run_for_shapes(draft)
    text = _with_plain_forward(module.text, run)
    if text != module.text:
        module = replace(module, text=text)
        write_reference(draft, text)
        run = run_for_shapes(draft)
    tensors = tensors_of(run)
    outputs = (OUTPUT,) if tensors.outputs == 1 else tuple(f"{OUTPUT}_{at}" for at in range(tensors.outputs))
    module = _with_numbers(source, module, tensors, outputs)
    draft = replace(draft, workloads={FULL: dict(module.parameters)}, scalars=dict(module.scalars), outputs=outputs)
    sizes = sizes_of(source, module, draft)
    signature = launcher_of(outputs, tensors.inputs, tensors.weights, module.parameters, module.scalars)
    write_atomically(draft.driver_path, driver_source(source.name, signature))
    write_reference(replace(draft, workloads=sizes), module.text)
    return _judged(load_problem(directory))


def _judged(problem: Problem) -> Problem:
    """The problem. Raises ProblemError where its tensors cannot be judged, at any size."""
    for size in problem.workloads:
        tensor_specs(problem, size, Precision.FP32)
    if is_affordable(problem):
        require_sound_reference(problem)
    return problem


def _require_elsewhere(problem: Problem) -> None:
    """Raise ProblemError where it does not run at extents that no size declares: kernels are judged there, too."""
    other = undeclared_extents(problem) if is_affordable(problem) else None
    if other is not None and is_affordable(other):
        results(other)


def _with_plain_forward(text: str, run: MetaRun) -> str:
    """The module's text, and below it what makes its forward one of tensors and fractions where it is not.

    Raises ProblemError where that is not possible.
    """
    fixed = constants(run.given.values())
    for given in _given_at_other_sizes(run.reference.problem) if fixed else ():
        fixed = {place: value for place, value in fixed.items() if given[place : place + 1] == [value]}
    left = {name: value for place, (name, value) in enumerate(run.given.items()) if place not in fixed}
    require_passable(run.reference, left, list(flat(run.returned)) or [run.returned])
    nested = not is_flat(run.returned)
    return plain_forward(text, list(run.given), fixed, nested=nested) if fixed or nested else text


def _given_at_other_sizes(problem: Problem) -> Iterator[list[object]]:
    """What `get_inputs` gives where one number is larger; some modules do not draw their inputs with all of them."""
    for name, extent in problem.workloads[FULL].items():
        for other in (extent + 1, 2 * extent):
            given = inputs_for_shapes(replace(problem, workloads={FULL: {**problem.workloads[FULL], name: other}}))
            if given is not None:
                yield given


def _with_numbers(source: Path, module: ModuleText, tensors: ModuleTensors, outputs: Iterable[str]) -> ModuleText:
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
