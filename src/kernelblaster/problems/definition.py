"""What a kernel computes: axes, tensors by name with a type each, and the reference as text.

The vocabulary and JSON are those of FlashInfer-Bench and SOL-ExecBench: a `Definition` is independent of extents, a
`Workload` gives them, a `Solution` is source that solves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, Literal, Self

from pydantic import Field, NonNegativeInt, model_validator

from kernelblaster.errors import ProblemError
from kernelblaster.problems.axis_expressions import evaluate, names_in
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.exchanged import ExchangedModel, Name


class AxisConst(ExchangedModel):
    """An extent that every workload shares."""

    type: Literal["const"]
    value: NonNegativeInt
    description: str | None = None


class AxisVar(ExchangedModel):
    """An extent that each workload gives."""

    type: Literal["var"]
    description: str | None = None


class AxisExpr(ExchangedModel):
    """An extent that follows from others, e.g. `heads * head_dim`."""

    type: Literal["expr"]
    expression: Name
    description: str | None = None


Axis = Annotated[AxisConst | AxisVar | AxisExpr, Field(discriminator="type")]


class TensorType(ExchangedModel):
    """Shape and element type of one input or output.

    Attributes:
        shape: axis names; empty for a tensor of one element without axes; None for a number that is passed by value.
        dtype: element type.
        description: for people.
    """

    shape: tuple[Name, ...] | None
    dtype: DType
    description: str | None = None

    @property
    def is_scalar(self) -> bool:
        """Whether it is a number, not a tensor."""
        return self.shape is None


class Definition(ExchangedModel):
    """What is to be computed, for any extents.

    Attributes:
        name: unique among definitions.
        axes: axis name -> constant, variable or derived extent.
        inputs: by name, in the order in which the reference takes them; parameters of a model come last.
        outputs: by name, in the order in which the reference returns them.
        reference: text of a Python module that says what is right.
        description: for people.
        op_type: category, e.g. `gemm`.
        tags: for grouping.
        constraints: Python expressions that every workload fulfils.
        custom_inputs_entrypoint: function of the reference that draws the inputs, for workloads that ask for it.
        weights: those of `inputs` that are parameters of a model.
    """

    name: Name
    axes: dict[Name, Axis]
    inputs: dict[Name, TensorType]
    outputs: dict[Name, TensorType]
    reference: Name
    description: str | None = None
    op_type: str | None = None
    tags: tuple[str, ...] | None = None
    constraints: tuple[Name, ...] | None = None
    custom_inputs_entrypoint: str | None = None
    weights: tuple[Name, ...] = ()

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        both = sorted(set(self.inputs) & set(self.outputs))
        if both:
            raise ValueError(f"{', '.join(both)} is an input and an output")
        for name, tensor in (*self.inputs.items(), *self.outputs.items()):
            unknown = [axis for axis in tensor.shape or () if axis not in self.axes]
            if unknown:
                raise ValueError(f"{name} has the axis {unknown[0]}, which is not declared")
        lost = [name for name in self.weights if name not in self.inputs]
        if lost:
            raise ValueError(f"the weight {lost[0]} is not among the inputs")
        return self

    @model_validator(mode="after")
    def _expressions_are_sound(self) -> Self:
        try:
            for constraint in self.constraints or ():
                names_in(constraint)
            for name in self.derived_axes:
                unknown = sorted(names_in(self.expressions[name]) - set(self.axes))
                if unknown:
                    raise ValueError(f"the axis {name} is derived from {unknown[0]}, which is not declared")
        except CycleError as error:
            raise ValueError(f"axes are derived from each other: {', '.join(error.args[1])}") from error
        except ProblemError as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def variable_axes(self) -> tuple[str, ...]:
        """Axes that a workload gives."""
        return tuple(name for name, axis in self.axes.items() if isinstance(axis, AxisVar))

    @property
    def expressions(self) -> dict[str, str]:
        """Derived axes and what they are derived by."""
        return {name: axis.expression for name, axis in self.axes.items() if isinstance(axis, AxisExpr)}

    @property
    def scalars(self) -> tuple[str, ...]:
        """Inputs that are numbers."""
        return tuple(name for name, tensor in self.inputs.items() if tensor.is_scalar)

    def extents(self, given: Mapping[str, int]) -> dict[str, int]:
        """The extent of every axis, in the order of `axes`, for the variable axes of a workload.

        Raises ProblemError when one is missing, or a derived one is no extent.
        """
        missing = [name for name in self.variable_axes if name not in given]
        if missing:
            raise ProblemError(
                f"a workload of {self.name} does not give {', '.join(missing)}", hint="give every variable axis"
            )
        known = {name: axis.value for name, axis in self.axes.items() if isinstance(axis, AxisConst)}
        known |= {name: given[name] for name in self.variable_axes}
        for name in self.derived_axes:
            value = evaluate(self.expressions[name], known)
            if value < 0 or value != int(value):
                raise ProblemError(f"the axis {name} of {self.name} becomes {value}", hint="choose other axis values")
            known[name] = int(value)
        return {name: known[name] for name in self.axes}

    def shape(self, tensor: str, extents: Mapping[str, int]) -> tuple[int, ...]:
        """Extents of an input or output tensor; raises ValueError for a number."""
        axes = {**self.inputs, **self.outputs}[tensor].shape
        if axes is None:
            raise ValueError(f"{tensor} of {self.name} is a number and has no shape")
        return tuple(extents[axis] for axis in axes)

    def unmet(self, extents: Mapping[str, int]) -> list[str]:
        """Constraints that extents break. Those that speak of more than axes are left out: only values decide them."""
        decided = [text for text in self.constraints or () if names_in(text) <= set(extents)]
        return [text for text in decided if _breaks(text, extents)]

    @property
    def derived_axes(self) -> list[str]:
        """Derived axes, each after those it is derived from."""
        expressions = self.expressions
        graph: dict[str, Any] = {name: names_in(text) & set(expressions) for name, text in expressions.items()}
        return list(TopologicalSorter(graph).static_order())


def _breaks(constraint: str, extents: Mapping[str, int]) -> bool:
    try:
        return not evaluate(constraint, extents)
    except ProblemError:
        return False  # calls and the like: the constraint is for whoever draws the values
