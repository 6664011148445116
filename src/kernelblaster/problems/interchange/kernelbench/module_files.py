"""The files of a problem that is made of a KernelBench module: its reference, and how its launcher is called."""

from __future__ import annotations

import re
from collections.abc import Collection

from kernelblaster.problems.interchange.signature import TAKEN, LauncherSignature
from kernelblaster.problems.problem import Problem
from kernelblaster.storage.atomic import write_atomically

MOST_POINTERS = 16
"""More weights than this reach the launcher as one array."""


def write_reference(problem: Problem, text: str) -> None:
    """The module's text, and what the problem declares below it."""
    sizes = {str(name): dict(parameters) for name, parameters in problem.workloads.items()}
    told = f"SIZES = {sizes!r}\nSCALARS = {dict(problem.scalars)!r}\n"
    if len(problem.outputs) > 1:
        told += f"OUTPUTS = {problem.outputs!r}\n"
    write_atomically(problem.reference_path, text + told)


def launcher_of(
    outputs: Collection[str],
    inputs: Collection[str],
    weights: Collection[str],
    sizes: Collection[str],
    scalars: Collection[str],
) -> LauncherSignature:
    """The launcher that takes these, each by its name where that is one of C++ and not taken yet."""
    taken: set[str] = set()
    kinds = {"output": outputs, "input": inputs, "size": sizes, "scalar": scalars}
    # Weights come third, and are named last: no other parameter is called otherwise for their sake.
    names = {kind: {_parameter(name, taken): name for name in of_kind} for kind, of_kind in kinds.items()}
    if len(weights) > MOST_POINTERS:
        passed = {_parameter("weights", taken): "d.weights()"}
        types = dict.fromkeys(passed, "void* const*")
    else:
        passed = {_parameter(name, taken): f'd.weight("{name}")' for name in weights}
        types = dict.fromkeys(passed, "void*")
    arguments: dict[str, str] = {}
    for kind, type_name in (("output", "void*"), ("input", "void*"), ("size", "int64_t"), ("scalar", "float")):
        arguments |= passed if kind == "size" else {}
        arguments |= {parameter: f'd.{kind}("{name}")' for parameter, name in names[kind].items()}
        types |= dict.fromkeys(names[kind], type_name)
    return LauncherSignature(arguments=arguments, types=types, pointers={}, integers={}, floats={})


def _parameter(name: str, taken: set[str]) -> str:
    """`layers.0.weight` as a name of C++ that nothing else has; it is taken from then on."""
    parameter = re.sub(r"\W", "_", name, flags=re.ASCII)
    if parameter[:1].isdigit():
        parameter = f"_{parameter}"
    while parameter in taken or parameter in TAKEN:
        parameter += "_"
    taken.add(parameter)
    return parameter
