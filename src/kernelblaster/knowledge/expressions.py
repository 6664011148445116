"""Conditions over metrics, as data in the knowledge base, under three-valued logic.

A condition compares one metric (or derived quantity, see `derived`) with a number. A metric that a profile lacks makes
the condition `unknown`, which is neither true nor false and never counts as 0:

- `all` is false when one part is false, else unknown when one part is unknown, else true;
- `any` is true when one part is true, else unknown when one part is unknown, else false;
- `not` of unknown is unknown.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}


class KleeneValue(Enum):
    """Kleene's three values."""

    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"


class _Node(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Condition(_Node):
    """`metric op value`; with `bounds`, reflection may move `value` inside them."""

    metric: str
    op: Literal[">=", ">", "<=", "<"]
    value: float
    bounds: tuple[float, float] | None = None

    @model_validator(mode="after")
    def _value_within_bounds(self) -> Self:
        if self.bounds is not None and not self.bounds[0] <= self.value <= self.bounds[1]:
            raise ValueError(f"{self.metric}: {self.value} lies outside its bounds {self.bounds}")
        return self


class AllOf(_Node):
    """Every part holds."""

    all: tuple[Expression, ...] = Field(min_length=1)


class AnyOf(_Node):
    """At least one part holds."""

    any: tuple[Expression, ...] = Field(min_length=1)


class NotOf(_Node):
    """The part does not hold. In JSON: `{"not": ...}`."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    part: Expression = Field(alias="not")


Expression = Condition | AllOf | AnyOf | NotOf

AllOf.model_rebuild()
AnyOf.model_rebuild()
NotOf.model_rebuild()


def evaluate(expression: Expression, values: Mapping[str, float]) -> KleeneValue:
    """KleeneValue of `expression` where `values` holds every known metric."""
    match expression:
        case Condition(metric=metric, op=op, value=value):
            if metric not in values:
                return KleeneValue.UNKNOWN
            return KleeneValue.TRUE if _COMPARE[op](values[metric], value) else KleeneValue.FALSE
        case AllOf(all=parts):
            return _combine(
                [evaluate(part, values) for part in parts], decisive=KleeneValue.FALSE, otherwise=KleeneValue.TRUE
            )
        case AnyOf(any=parts):
            return _combine(
                [evaluate(part, values) for part in parts], decisive=KleeneValue.TRUE, otherwise=KleeneValue.FALSE
            )
        case NotOf(part=part):
            flipped = {
                KleeneValue.TRUE: KleeneValue.FALSE,
                KleeneValue.FALSE: KleeneValue.TRUE,
                KleeneValue.UNKNOWN: KleeneValue.UNKNOWN,
            }
            return flipped[evaluate(part, values)]


def _combine(values: list[KleeneValue], *, decisive: KleeneValue, otherwise: KleeneValue) -> KleeneValue:
    if decisive in values:
        return decisive
    return KleeneValue.UNKNOWN if KleeneValue.UNKNOWN in values else otherwise


def conditions(expression: Expression) -> Iterator[Condition]:
    """Every condition inside, left to right."""
    match expression:
        case Condition():
            yield expression
        case AllOf(all=parts) | AnyOf(any=parts):
            for part in parts:
                yield from conditions(part)
        case NotOf(part=part):
            yield from conditions(part)


def with_threshold(expression: Expression, metric: str, value: float) -> Expression:
    """The expression with the threshold of every bounded condition on `metric` moved to `value`."""
    match expression:
        case Condition(metric=name, bounds=bounds) if name == metric and bounds is not None:
            return expression.model_copy(update={"value": value})
        case AllOf(all=parts):
            return AllOf(all=tuple(with_threshold(part, metric, value) for part in parts))
        case AnyOf(any=parts):
            return AnyOf(any=tuple(with_threshold(part, metric, value) for part in parts))
        case NotOf(part=part):
            return NotOf(part=with_threshold(part, metric, value))
        case _:
            return expression


def describe(expression: Expression, values: Mapping[str, float]) -> list[str]:
    """`metric = seen (op threshold)` for each condition that is known to hold."""
    return [
        f"{condition.metric} = {values[condition.metric]:.4g} ({condition.op} {condition.value:g})"
        for condition in conditions(expression)
        if evaluate(condition, values) is KleeneValue.TRUE
    ]


def unknown_metrics(expression: Expression, values: Mapping[str, float]) -> set[str]:
    """Metrics the expression asks for that are not known."""
    return {condition.metric for condition in conditions(expression) if condition.metric not in values}
