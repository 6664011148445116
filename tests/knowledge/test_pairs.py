"""Lessons from measured pairs: added, confirmed, contradicted, joined, shown; never across kinds of devices."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from knowledge_samples import context, document, transition

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.knowledge.changes import Provenance
from kernelblaster.knowledge.experience import EXPERIENCE, Experience
from kernelblaster.knowledge.lessons import retrieve
from kernelblaster.knowledge.merge import merge
from kernelblaster.knowledge.pair_evidence import PAIRS_KEPT, holds, joined_pairs, measured_line
from kernelblaster.knowledge.pairs import (
    LONGEST,
    PER_SCOPE,
    Learned,
    PairEffect,
    PairFinding,
    count_shown,
    is_telling,
    known_for,
    learn,
)
from kernelblaster.knowledge.render import render
from kernelblaster.knowledge.schema import KnowledgeDocument, PairMeasurement
from kernelblaster.knowledge.store import KnowledgeStore
from kernelblaster.problems.families import OpFamily
from kernelblaster.problems.problem import Precision

PROVENANCE = Provenance(run="run-a", model="scripted", problem="level1/023")
TEXT = "When rows are long, load four values at once: each sector is then used whole."
OTHER = "Keep partial sums in registers until the last block, for atomics serialise."


def taught(known: KnowledgeDocument, made, **finding: str) -> tuple[KnowledgeDocument, list[Learned]]:
    return learn(known, made, PairFinding(**finding), PROVENANCE)


def one_lesson(**changes) -> KnowledgeDocument:
    """A document with one lesson, from a pair that gained 1.5x."""
    return taught(document(), transition("step-0", **changes), text=TEXT)[0]


def shown(known: KnowledgeDocument, **changes) -> list[str]:
    found = retrieve(known.lessons, {}, "busy", "widen", context(**changes), np.random.default_rng(0))
    return [lesson.text for lesson in found]


@pytest.mark.parametrize(
    ("changes", "telling"),
    [
        ({}, True),
        ({"speedup": 0.8}, True),
        ({"decision": Decision.INCONCLUSIVE, "speedup": 1.0, "speedup_low": 0.9, "speedup_high": 1.1}, False),
        ({"verdict": Verdict.WRONG_VALUES}, False),
        ({"weakly_verified": True}, False),
        ({"duplicate": True}, False),
    ],
)
def test_a_pair_is_telling_when_it_is_apart_beyond_noise(changes, telling):
    assert is_telling(transition("s").model_copy(update=changes)) is telling
    if "speedup" in changes and telling:
        assert is_telling(transition("s", **changes))


def test_a_lesson_keeps_where_it_was_measured_and_how_much():
    (lesson,) = one_lesson(op_family="matmul").lessons
    (pair,) = lesson.pairs
    assert (lesson.state, lesson.technique, lesson.provenance) == ("busy", "widen", PROVENANCE)
    assert (pair.op_family, pair.arch, pair.precision) == (OpFamily.MATMUL, "sm_90", Precision.FP16)
    assert pair.low < pair.speedup == 1.5 < pair.high
    assert not pair.contradicts


def test_it_is_shown_with_its_gain_and_interval_beside_its_technique():
    (line,) = shown(one_lesson())
    assert line.startswith(TEXT)
    assert f"(1.50x [{1.5 * 0.99:.2f}, {1.5 * 1.01:.2f}], softmax fp16 sm_90)" in line
    assert not retrieve(one_lesson().lessons, {}, "busy", "fuse", context(), np.random.default_rng(0))


def test_the_same_sentence_in_other_words_is_another_pair_of_the_same_lesson():
    known, effects = taught(one_lesson(), transition("step-1", speedup=1.2), text=TEXT.replace("whole", "fully"))
    assert [effect.effect for effect in effects] == [PairEffect.CONFIRMED]
    (lesson,) = known.lessons
    assert [pair.speedup for pair in sorted(lesson.pairs, key=lambda pair: pair.speedup)] == [1.2, 1.5]
    assert "in 2 pairs" in measured_line(lesson, DeviceKind.CUDA)


def test_what_a_resumed_search_teaches_again_changes_nothing():
    known = one_lesson()
    again, effects = taught(known, transition("step-0"), text=TEXT)
    assert again is known
    assert [effect.effect for effect in effects] == [PairEffect.ADDED]


def test_a_pair_confirms_or_contradicts_as_it_was_measured_whatever_is_claimed():
    known = one_lesson()
    (lesson,) = known.lessons
    slower, faster = transition("step-1", speedup=0.7), transition("step-2", speedup=1.3)
    for made, claim in ((slower, {"same_as": lesson.id}), (faster, {"contradicts": lesson.id})):
        unchanged, (effect,) = taught(known, made, **claim)
        assert effect.effect is PairEffect.REFUSED
        assert unchanged == known
    contradicted, (effect,) = taught(known, slower, contradicts=lesson.id)
    assert effect.effect is PairEffect.CONTRADICTED
    assert not shown(contradicted)


def test_a_contradicted_lesson_is_dropped_and_no_older_file_brings_it_back():
    known = one_lesson()
    contradicted, _ = taught(known, transition("step-1", speedup=0.7), contradicts=known.lessons[0].id)
    for merged in (merge(contradicted, known), merge(known, contradicted)):
        assert not shown(merged)
        assert not known_for(merged, transition("step-9"))
    confirmed, _ = taught(merged, transition("step-2", speedup=1.4), text=TEXT)
    assert len(shown(confirmed)) == 1
    assert "no longer shown" in render(contradicted)


def test_a_step_that_was_shown_a_lesson_counts_for_or_against_it():
    known = one_lesson()
    name = known.lessons[0].id
    lost = count_shown(known, transition("step-1", speedup=0.7, lessons=(name,)))
    assert not shown(lost)
    assert count_shown(known, transition("step-1", speedup=0.7)) == known
    assert count_shown(known, transition("step-1", speedup=0.7, lessons=(name,), done="fuse")) == known
    won = count_shown(known, transition("step-1", speedup=1.7, lessons=(name,)))
    assert "in 2 pairs" in shown(won)[0]


def test_what_to_leave_is_not_refuted_by_a_step_that_left_it():
    known, _ = taught(document(), transition("step-0", speedup=0.6), text=TEXT)
    name = known.lessons[0].id
    assert count_shown(known, transition("step-1", speedup=1.7, lessons=(name,))) == known


def test_pairs_of_an_emulated_gpu_say_nothing_of_a_real_one():
    known = one_lesson(device_kind=DeviceKind.EMULATED)
    assert not shown(known)
    assert len(shown(known, device_kind=DeviceKind.EMULATED)) == 1
    assert not holds(known.lessons[0], DeviceKind.CUDA)


@pytest.mark.parametrize("text", ["too short", "x" * (LONGEST + 1), "a bell \a in a sentence of some length"])
def test_a_text_that_no_prompt_could_show_is_refused(text):
    known, (effect,) = taught(document(), transition("step-0"), text=text)
    assert effect.effect is PairEffect.REFUSED
    assert not known.lessons


def test_a_state_and_technique_have_few_lessons():
    known = document()
    for number in range(PER_SCOPE + 2):
        words = " ".join(f"word{number}{letter}" for letter in "abcdef")
        known, effects = taught(known, transition(f"step-{number}"), text=words)
    assert len(known.lessons) == PER_SCOPE
    assert effects[0].effect is PairEffect.REFUSED
    assert taught(known, transition("other", technique="fuse"), text=OTHER)[1][0].effect is PairEffect.ADDED


def test_an_unknown_technique_leaves_the_lesson_to_its_state():
    (lesson,) = taught(document(), transition("step-0", technique="free_form"), text=TEXT)[0].lessons
    assert (lesson.state, lesson.technique) == ("busy", None)


pairs = st.builds(
    PairMeasurement, transition=st.sampled_from([f"{number:02}" for number in range(30)]), problem=st.just("level1/1"),
    op_family=st.just(OpFamily.SOFTMAX), arch=st.just("sm_90"), device_kind=st.just(DeviceKind.CUDA),
    precision=st.just(Precision.FP16), speedup=st.floats(0.5, 2), low=st.just(1), high=st.just(1),
    contradicts=st.booleans(),
)  # fmt: skip


@given(st.lists(pairs, max_size=20), st.lists(pairs, max_size=20), st.lists(pairs, max_size=20))
def test_pairs_join_in_any_order_and_stay_few(one, two, three):
    assert joined_pairs(one, two) == joined_pairs(two, one)
    assert joined_pairs(joined_pairs(one, two), three) == joined_pairs(one, joined_pairs(two, three))
    assert joined_pairs(joined_pairs(one, two), one) == joined_pairs(one, two)
    assert len(joined_pairs(one, two)) <= PAIRS_KEPT


def test_an_experience_learns_exports_and_counts_what_was_shown(tmp_path):
    path = tmp_path / "optimization_database.json"
    path.write_text(document().model_dump_json())
    experience = Experience(KnowledgeStore(path))
    first = transition("step-0")
    experience.record(first)
    (effect,) = experience.learn_pair(first, PairFinding(text=TEXT), PROVENANCE)
    experience.record(transition("step-1", speedup=0.7, lessons=(effect.lesson,)))
    written = KnowledgeStore(experience.export()).load().document
    experience.close()
    assert [pair.contradicts for pair in sorted(written.lessons[0].pairs, key=lambda pair: pair.speedup)] == [
        True,
        False,
    ]
    assert not shown(written)


def test_a_file_of_the_second_format_is_read_whole(tmp_path):
    path = tmp_path / "optimization_database.json"
    held = json.loads(one_lesson().model_dump_json()) | {"format": "kernelblaster-knowledge-2"}
    del held["lessons"][0]["pairs"]
    held["lessons"][0]["counts"] = {"earlier": {"helpful": 2}}
    path.write_text(json.dumps(held))
    (lesson,) = KnowledgeStore(path).load().document.lessons
    assert (lesson.text, lesson.pairs, lesson.record(DeviceKind.CUDA)) == (TEXT, (), (2, 0))


def test_a_database_of_the_version_before_goes_on(tmp_path):
    path = tmp_path / "optimization_database.json"
    path.write_text(document().model_dump_json())
    before = Experience(KnowledgeStore(path))
    before.record(transition("step-0"))
    with before._database.transaction() as connection:
        connection.execute("UPDATE definitions SET body = replace(body, 'knowledge-3', 'knowledge-2')")
        connection.execute("PRAGMA user_version = 3")
    before.close()
    assert (tmp_path / EXPERIENCE).exists()
    after = Experience(KnowledgeStore(path))
    assert sum(row.sums.attempts for row in after.document().statistics) == 1
    assert after.learn_pair(transition("step-0"), PairFinding(text=TEXT), PROVENANCE)[0].effect is PairEffect.ADDED
    after.close()
