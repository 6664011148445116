"""Workloads as sizes of a problem: extents by name, under the workload's own name.

KernelBlaster draws fresh inputs for every check and every timed call, so a workload whose inputs lie in files cannot be
judged; nor can one whose fractional numbers differ from those of the others, for a problem has one value for each.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kernelblaster.errors import ProblemError
from kernelblaster.problems.definition import Definition
from kernelblaster.problems.interchange.bundle import ProblemBundle
from kernelblaster.problems.interchange.signature import size_parameters, whole_numbers
from kernelblaster.problems.interchange.trace import Trace
from kernelblaster.problems.workload import CustomInput, RandomInput, Workload

_SIZE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True)
class WorkloadSizes:
    """Sizes of a problem, and what was left out.

    Attributes:
        sizes: size name -> parameters, the cheapest first.
        scalars: numbers with a fraction.
        custom: sizes whose inputs the definition's own function draws.
        notes: workloads that are no sizes, and why.
    """

    sizes: Mapping[str, Mapping[str, int]]
    scalars: Mapping[str, float]
    custom: frozenset[str]
    notes: tuple[str, ...]


def size_names(workloads: Iterable[Trace]) -> dict[str, str]:
    """Workload name -> size name: the same where it can be one, else `w` and its number."""
    return {
        line.workload.name: line.workload.name if _SIZE_NAME.fullmatch(line.workload.name) else f"w{number}"
        for number, line in enumerate(workloads)
    }


def map_workloads(bundle: ProblemBundle) -> WorkloadSizes:
    """The workloads of a bundle as sizes. Raises ProblemError when none can be one."""
    definition, names = bundle.definition, size_names(bundle.workloads)
    whole, notes = whole_numbers(definition), []
    mapped: list[tuple[int, Workload, dict[str, int]]] = []
    scalars: dict[str, float] | None = None
    for workload in (line.workload for line in bundle.workloads):
        fractions = {name: float(value) for name, value in workload.scalars.items() if name not in whole}
        reason = _reason_against(definition, workload)
        if reason is None and scalars is not None and fractions != scalars:
            reason = f"its numbers {fractions} are not those of the others, {scalars}"
        if reason is not None:
            notes.append(f"workload {workload.name} is no size: {reason}")
            continue
        scalars = fractions
        extents = definition.extents(workload.axes)
        numbers = {name: int(workload.scalars[name]) for name in whole}
        parameters = {name: {**extents, **numbers}[name] for name in size_parameters(definition)}
        mapped.append((_elements(definition, extents), workload, parameters))
    if not mapped:
        raise ProblemError(
            f"no workload of {definition.name} can be evaluated: {'; '.join(notes) or 'there is none'}",
            hint="give it a workload with random inputs",
        )
    mapped.sort(key=lambda found: found[0])
    return WorkloadSizes(
        sizes={names[workload.name]: parameters for _, workload, parameters in mapped},
        scalars=scalars or {},
        custom=frozenset(names[workload.name] for _, workload, _ in mapped if _draws_itself(workload)),
        notes=tuple(notes),
    )


def _reason_against(definition: Definition, workload: Workload) -> str | None:
    """Why a workload cannot be a size; None when it can."""
    try:
        broken = definition.unmet(definition.extents(workload.axes))
    except ProblemError as error:
        return str(error)
    if broken:
        return f"it breaks {broken[0]}"
    missing = [name for name in definition.scalars if name not in workload.scalars]
    if missing:
        return f"it gives no number for {missing[0]}"
    if any(workload.scalars[name] < 0 for name in whole_numbers(definition)):
        return "it gives a negative whole number, which is no extent"
    sources = {name: workload.inputs.get(name) for name in definition.inputs if name not in definition.scalars}
    given = [name for name, source in sources.items() if not isinstance(source, RandomInput | CustomInput)]
    if given:
        return f"the values of {given[0]} come from a file, and KernelBlaster draws fresh ones for every call"
    custom = {name for name, source in sources.items() if isinstance(source, CustomInput)}
    if custom and definition.custom_inputs_entrypoint is None:
        return "its inputs are custom, and the definition names no function that draws them"
    if custom and custom != set(sources):
        return "some of its inputs are custom and some are not"
    return None


def _draws_itself(workload: Workload) -> bool:
    return any(isinstance(source, CustomInput) for source in workload.inputs.values())


def _elements(definition: Definition, extents: Mapping[str, int]) -> int:
    """Elements of all tensors: what a workload costs, roughly."""
    tensors = {**definition.inputs, **definition.outputs}
    return sum(math.prod(definition.shape(name, extents)) for name, one in tensors.items() if not one.is_scalar)
