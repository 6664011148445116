from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from knowledge_samples import context, transition

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.knowledge.lessons import SHOWN, identify, merge_lessons, outcome_count, retrieve
from kernelblaster.knowledge.schema import Lesson, LessonCount
from kernelblaster.problems.families import OpFamily
from kernelblaster.problems.problem import Precision


def lesson(name: str, helpful: int = 0, harmful: int = 0, kind: DeviceKind = DeviceKind.CUDA, **scope) -> Lesson:
    count = LessonCount(helpful=helpful, harmful=harmful, device_kind=kind)
    counts = {"earlier": count} if helpful or harmful else {}
    return Lesson(id=name, text=f"text of {name}", counts=counts, **scope)


def shown(*lessons: Lesson, seed: int = 0, kind: DeviceKind = DeviceKind.CUDA) -> list[str]:
    rng, records = np.random.default_rng(seed), {it.id: it.record(kind) for it in lessons}
    return [it.id for it in retrieve(lessons, records, "busy", "widen", context(device_kind=kind), rng)]


def often(*lessons: Lesson, kind: DeviceKind = DeviceKind.CUDA) -> list[str]:
    """Ids in the order of how often they are shown first, those never shown left out."""
    first = Counter(shown(*lessons, seed=seed, kind=kind)[0] for seed in range(200))
    return [name for name, _ in first.most_common()]


@pytest.mark.parametrize(
    ("scope", "applies"),
    [
        ({}, True),
        ({"technique": "widen"}, True),
        ({"technique": "fuse"}, False),
        ({"state": "busy", "op_family": OpFamily.SOFTMAX, "precision": Precision.FP16}, True),
        ({"state": "busy", "op_family": OpFamily.MATMUL}, False),
        ({"precision": Precision.FP32}, False),
        ({"state": "slow", "technique": "widen"}, False),
    ],
)
def test_every_part_of_a_scope_must_match(scope, applies):
    assert bool(shown(lesson("a", **scope))) is applies


def test_the_closest_scopes_come_first_and_only_three():
    lessons = [
        lesson("anywhere"),
        lesson("state", state="busy"),
        lesson("both", state="busy", technique="widen"),
        lesson("technique", technique="widen"),
        lesson("all", state="busy", technique="widen", precision=Precision.FP16),
    ]
    assert often(*lessons)[:2] == ["all", "both"]
    assert "anywhere" not in often(*lessons)
    assert len(shown(*lessons)) == SHOWN


def test_every_lesson_gets_its_turn_beside_others_that_do_no_harm():
    known = [lesson(name, helpful=2, technique="widen") for name in "abc"]
    new = [lesson(name, technique="widen") for name in "xyz"]
    seen = Counter(name for seed in range(200) for name in shown(*known, *new, seed=seed))
    assert seen.keys() == set("abcxyz")
    assert min(seen[name] for name in "abc") > max(seen[name] for name in "xyz")
    assert shown(*known, *new, seed=7) == shown(*known, *new, seed=7)


def test_a_good_record_lifts_and_a_bad_one_hides():
    lessons = lesson("plain"), lesson("good", helpful=5), lesson("bad", harmful=6, helpful=1)
    assert often(*lessons) == ["good", "plain"]
    assert sorted(shown(*lessons)) == ["good", "plain"]


def test_what_emulation_says_of_a_lesson_does_not_count_on_a_gpu():
    emulated = lesson("a", harmful=6, kind=DeviceKind.EMULATED)
    assert sorted(shown(emulated, lesson("b"))) == ["a", "b"]
    assert shown(emulated, lesson("b"), kind=DeviceKind.EMULATED) == ["b"]
    made = outcome_count(transition(lessons=("a",), device_kind=DeviceKind.EMULATED))
    assert made == LessonCount(helpful=1, device_kind=DeviceKind.EMULATED)


@pytest.mark.parametrize(
    ("made", "counts"),
    [
        (transition(lessons=("a",), speedup=1.5), (1, 0)),
        (transition(lessons=("a",), speedup=0.8), (0, 1)),
        (transition(lessons=("a",), verdict=Verdict.WRONG_VALUES), (0, 1)),
        (transition(lessons=("a",), decision=Decision.INCONCLUSIVE), None),
        (transition(lessons=("a",), verdict=Verdict.NOT_EMULATABLE), None),
    ],
)
def test_outcomes_count_for_the_lessons_that_were_shown(made, counts):
    found = outcome_count(made)
    assert (found and (found.helpful, found.harmful)) == counts


def test_the_id_depends_on_the_words_alone():
    assert identify("Pad the tile.") == identify("  pad THE tile.  ")
    assert identify("Pad the tile") != identify("Pad the row")


counters = st.dictionaries(
    st.sampled_from(["r1", "r2"]), st.builds(LessonCount, helpful=st.integers(0, 3), harmful=st.integers(0, 3))
)
tables = st.dictionaries(st.sampled_from(["a", "b", "c"]), counters).map(
    lambda table: [Lesson(id=name, text=name, counts=counts) for name, counts in table.items()]
)


def as_map(lessons):
    return {it.id: it for it in lessons}


@given(tables, tables)
def test_merging_commutes_and_repeats_without_effect(left, right):
    once = merge_lessons(left, right)
    assert as_map(once) == as_map(merge_lessons(right, left))
    assert as_map(merge_lessons(once, right)) == as_map(once)


@given(tables, tables, tables)
def test_merging_associates(first, second, third):
    assert as_map(merge_lessons(merge_lessons(first, second), third)) == as_map(
        merge_lessons(first, merge_lessons(second, third))
    )
