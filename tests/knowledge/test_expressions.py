from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from kernelblaster.knowledge.expressions import (
    AllOf,
    AnyOf,
    Condition,
    Expression,
    KleeneValue,
    NotOf,
    conditions,
    describe,
    evaluate,
    unknown_metrics,
    with_threshold,
)

T, F, U = KleeneValue.TRUE, KleeneValue.FALSE, KleeneValue.UNKNOWN
VALUES = {"one": 1.0}
LEAVES = {
    T: Condition(metric="one", op=">=", value=1),
    F: Condition(metric="one", op=">", value=1),
    U: Condition(metric="missing", op=">=", value=0),
}

conditions_of_any_kind = st.builds(
    Condition,
    metric=st.sampled_from(["a", "b", "c"]),
    op=st.sampled_from([">=", ">", "<=", "<"]),
    value=st.integers(-3, 3).map(float),
)
expressions = st.recursive(
    conditions_of_any_kind,
    lambda parts: st.one_of(
        st.lists(parts, min_size=1, max_size=3).map(lambda them: AllOf(all=tuple(them))),
        st.lists(parts, min_size=1, max_size=3).map(lambda them: AnyOf(any=tuple(them))),
        parts.map(lambda part: NotOf(part=part)),
    ),
    max_leaves=8,
)
known_values = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(-3, 3).map(float))


@pytest.mark.parametrize(
    ("parts", "every", "some"),
    [
        ((T, T), T, T),
        ((T, F), F, T),
        ((F, F), F, F),
        ((T, U), U, T),
        ((F, U), F, U),
        ((U, U), U, U),
    ],
)
def test_the_tables_of_three_valued_logic(parts, every, some):
    leaves = tuple(LEAVES[part] for part in parts)
    assert evaluate(AllOf(all=leaves), VALUES) is every
    assert evaluate(AnyOf(any=leaves), VALUES) is some


@pytest.mark.parametrize(("part", "flipped"), [(T, F), (F, T), (U, U)])
def test_not(part, flipped):
    assert evaluate(NotOf(part=LEAVES[part]), VALUES) is flipped


def test_a_missing_metric_is_not_zero():
    assert evaluate(Condition(metric="missing", op="<=", value=5), {}) is U
    assert evaluate(Condition(metric="missing", op=">=", value=5), {}) is U


@given(expressions, known_values)
def test_learning_more_never_overturns_what_was_known(expression, values):
    full = {"a": 0.0, "b": 0.0, "c": 0.0} | values
    before = evaluate(expression, values)
    assert before in (U, evaluate(expression, full))


@given(expressions, known_values)
def test_it_is_known_when_every_metric_is(expression, values):
    if not unknown_metrics(expression, values):
        assert evaluate(expression, values) is not U


@given(expressions, known_values)
def test_json_keeps_the_meaning(expression, values):
    adapter = TypeAdapter(Expression)
    again = adapter.validate_json(adapter.dump_json(expression, exclude_defaults=True))
    assert evaluate(again, values) is evaluate(expression, values)


def test_only_movable_thresholds_of_the_metric_move():
    fixed = Condition(metric="m", op="<", value=9)
    movable = Condition(metric="m", op=">=", value=5, bounds=(4, 8))
    other = Condition(metric="n", op=">=", value=5, bounds=(4, 8))
    moved = with_threshold(AllOf(all=(fixed, AnyOf(any=(movable, NotOf(part=other))))), "m", 7)
    assert [condition.value for condition in conditions(moved)] == [9, 7, 5]


def test_the_description_names_what_held_and_what_was_seen():
    expression = AnyOf(any=(LEAVES[T], LEAVES[F], LEAVES[U]))
    assert describe(expression, VALUES) == ["one = 1 (>= 1)"]


@pytest.mark.parametrize(
    "content",
    [
        {"metric": "m", "op": "==", "value": 1},
        {"metric": "m", "op": ">=", "value": 1, "bounds": [2, 3]},
        {"metric": "m", "op": ">=", "value": float("nan")},
        {"all": []},
        {"all": [{"metric": "m", "op": ">=", "value": 1}], "any": []},
        {"exec": "import os"},
    ],
)
def test_nonsense_is_refused(content):
    with pytest.raises(ValidationError):
        TypeAdapter(Expression).validate_python(content)
