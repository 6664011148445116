"""JSON to dataclasses: what goes out comes back, and what does not fit is refused by its name."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxemu.decoding import DecodingError, decode, json_lines


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


@dataclass(frozen=True)
class Leaf:
    name: str
    weight: float
    place: tuple[int, int, int]
    colour: Colour | None = None


@dataclass(frozen=True)
class Tree:
    leaves: tuple[Leaf, ...]
    counts: dict[int, int]
    sides: Literal[1, 2]
    tall: bool = False


LEAVES = st.builds(
    Leaf,
    name=st.text("ab é", max_size=3),
    weight=st.floats(allow_nan=False, allow_infinity=False),
    place=st.tuples(st.integers(), st.integers(), st.integers()),
    colour=st.sampled_from(Colour) | st.none(),
)
TREES = st.builds(
    Tree,
    leaves=st.lists(LEAVES, max_size=3).map(tuple),
    counts=st.dictionaries(st.integers(), st.integers(), max_size=3),
    sides=st.sampled_from([1, 2]),
    tall=st.booleans(),
)
TREE = {"leaves": [{"name": "a", "weight": 1, "place": [1, 2, 3]}], "counts": {"7": 1}, "sides": 2}


@given(TREES)
def test_what_is_written_reads_back(tree: Tree) -> None:
    assert decode(Tree, json.loads(json.dumps(asdict(tree)))) == tree


def test_defaults_and_widened_integers() -> None:
    tree = decode(Tree, TREE)
    assert (tree.tall, tree.counts, tree.leaves[0].colour) == (False, {7: 1}, None)
    assert isinstance(tree.leaves[0].weight, float)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"sides": 3}, "sides"),
        ({"sides": None}, "sides"),
        ({"tall": 1}, "tall"),
        ({"counts": {"x": 1}}, "counts"),
        ({"counts": {"1": True}}, "counts"),
        ({"leaves": [{"name": "a", "weight": 1, "place": [1, 2]}]}, "place"),
        ({"leaves": [{"name": "a", "weight": "heavy", "place": [1, 2, 3]}]}, "weight"),
        ({"leaves": [{"name": "a", "weight": 1, "place": [1, 2, 3], "colour": "blue"}]}, "colour"),
        ({"leaves": [{"weight": 1, "place": [1, 2, 3]}]}, "name"),
        ({"leaves": {}}, "leaves"),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, object], named: str) -> None:
    with pytest.raises(DecodingError, match=named):
        decode(Tree, TREE | change)


def test_unknown_keys_are_refused_where_that_is_asked_for() -> None:
    assert decode(Tree, TREE | {"extra": 1}) == decode(Tree, TREE)
    with pytest.raises(DecodingError, match="extra"):
        decode(Tree, TREE | {"extra": 1}, strict=True)


@pytest.mark.parametrize(("text", "values"), [("", []), ("[1", []), ('{}\n"a', [{}]), ('{}\n"a"\n', [{}, "a"])])
def test_a_torn_last_line_is_left_out_of_a_report_that_was_cut_off(text: str, values: list[object]) -> None:
    assert list(json_lines(text, cut_off=True)) == values


def test_a_torn_last_line_of_any_other_report_does_not_read() -> None:
    with pytest.raises(json.JSONDecodeError):
        list(json_lines('{}\n"a', cut_off=False))
