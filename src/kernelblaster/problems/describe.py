"""A problem directory in the vocabulary of exchange: its `Definition`, and its sizes as `Workload`s.

`reference.py` names parameters, not the axes of tensors. Which axis is which is found by running the reference at every
declared size on torch's `meta` device: an axis whose extents are those of a parameter is that parameter; one that never
changes is a constant; one that is a product, quotient, sum or difference of parameters and constants is derived. What
fits nothing becomes a variable axis of its own, which each workload gives: nothing is guessed that is not so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations_with_replacement

from kernelblaster.errors import ProblemError
from kernelblaster.problems.definition import AxisConst, AxisExpr, AxisVar, Definition, TensorType
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.problem import Precision, Problem, TensorRole, TensorSpec
from kernelblaster.problems.reference import tensor_specs
from kernelblaster.problems.workload import InputSource, RandomInput, ScalarInput, Workload

Extents = tuple[int, ...]
"""One extent per size, in the order of the sizes."""


@dataclass(frozen=True)
class ProblemDescription:
    """A problem's definition and workloads, in the order in which its sizes are declared."""

    definition: Definition
    workloads: tuple[Workload, ...]


@dataclass
class _Axes:
    """Axes found so far."""

    parameters: Mapping[str, Extents]
    found: dict[str, AxisConst | AxisVar | AxisExpr]
    own: dict[str, Extents] = field(default_factory=dict)
    """Variable axes that are no parameter."""

    def name(self, extents: Extents, tensor: str, place: int) -> str:
        """The axis with these extents, made if there is none."""
        for name, known in (*self.parameters.items(), *self.own.items()):
            if known == extents:
                return name
        if len(set(extents)) == 1:
            return self._add(f"const_{extents[0]}", AxisConst(type="const", value=extents[0]))
        for name, expression in _expressions(self.parameters, extents):
            return self._add(name, AxisExpr(type="expr", expression=expression))
        name = f"{tensor.replace('.', '_')}_axis_{place}"
        self.own[name] = extents
        return self._add(name, AxisVar(type="var"))

    def _add(self, name: str, axis: AxisConst | AxisVar | AxisExpr) -> str:
        self.found.setdefault(name, axis)
        return name


def describe(problem: Problem, precision: Precision) -> ProblemDescription:
    """Definition and workloads of a problem whose floating-point tensors are stored in `precision`.

    Raises ProblemError when the reference cannot be run at a declared size, or the problem has none, and for a network
    whose sizes differ in their layers: a definition names the same tensors at all sizes.
    """
    problem.require_reference()
    workloads = list(problem.workloads)
    specs = [tensor_specs(problem, workload, precision) for workload in workloads]
    if len({tuple(spec.name for spec in own) for own in specs}) > 1:
        raise ProblemError(
            f"{problem.slug} has other weights at other sizes, which no definition can say",
            hint="its sizes differ in the number of layers; declare sizes that differ in extents alone",
        )
    names = list(problem.workloads[workloads[0]])
    parameters = {name: tuple(problem.workloads[workload][name] for workload in workloads) for name in names}
    axes = _Axes(parameters, {name: AxisVar(type="var") for name in names})
    tensors = {together[0].name: _type(together, axes) for together in zip(*specs, strict=True)}
    by_role = {role: [spec.name for spec in specs[0] if spec.role is role] for role in TensorRole}
    numbers = {name: TensorType(shape=None, dtype=DType.FLOAT32) for name in problem.scalars}
    given = [*by_role[TensorRole.INPUT], *by_role[TensorRole.WEIGHT]]
    definition = Definition(
        name=problem.slug,
        axes=axes.found,
        inputs={name: tensors[name] for name in given} | numbers,
        outputs={name: tensors[name] for name in by_role[TensorRole.OUTPUT]},
        reference=problem.reference_path.read_text(encoding="utf-8"),
    )
    if by_role[TensorRole.WEIGHT]:
        definition = definition.model_copy(update={"weights": tuple(by_role[TensorRole.WEIGHT])})
    return ProblemDescription(definition, tuple(_workloads(problem, axes, given)))


def _type(specs: tuple[TensorSpec, ...], axes: _Axes) -> TensorType:
    """One tensor, given as it is at each size."""
    shapes = zip(*(spec.shape for spec in specs), strict=True)
    names = tuple(axes.name(extents, specs[0].name, place) for place, extents in enumerate(shapes))
    return TensorType(shape=names, dtype=specs[0].dtype)


def _workloads(problem: Problem, axes: _Axes, tensors: list[str]) -> Iterator[Workload]:
    sources: dict[str, InputSource] = {name: RandomInput(type="random") for name in tensors}
    sources |= {name: ScalarInput(type="scalar", value=value) for name, value in problem.scalars.items()}
    for number, (workload, parameters) in enumerate(problem.workloads.items()):
        own = {name: extents[number] for name, extents in axes.own.items()}
        yield Workload(name=workload, axes={**parameters, **own}, inputs=sources)


def _expressions(parameters: Mapping[str, Extents], wanted: Extents) -> Iterator[tuple[str, str]]:
    """Names and expressions of axes that have the wanted extents at every size."""
    for (one, a), (other, b) in combinations_with_replacement(parameters.items(), 2):
        if tuple(x * y for x, y in zip(a, b, strict=True)) == wanted:
            yield f"{one}_times_{other}", f"{one} * {other}"
        for first, x, second, y in ((one, a, other, b), (other, b, one, a)):
            if all(d > 0 and n // d == w for n, d, w in zip(x, y, wanted, strict=True)):
                yield f"{first}_by_{second}", f"{first} // {second}"
    for name, extents in parameters.items():
        pairs = [(extent, want) for extent, want in zip(extents, wanted, strict=True)]
        if all(extent and want % extent == 0 for extent, want in pairs) and len({w // e for e, w in pairs}) == 1:
            factor = pairs[0][1] // pairs[0][0]
            yield f"{name}_times_{factor}", f"{name} * {factor}"
        if len({want - extent for extent, want in pairs}) == 1:
            shift = pairs[0][1] - pairs[0][0]
            sign, word = ("+", "plus") if shift > 0 else ("-", "minus")
            yield f"{name}_{word}_{abs(shift)}", f"{name} {sign} {abs(shift)}"
