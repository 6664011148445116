from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from knowledge_samples import DRAM, context, document, facts, gains, profile, row, transition
from knowledge_samples import recorded as counted
from pydantic import TypeAdapter, ValidationError

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.knowledge.amend import OPEN_PROPOSALS, amend
from kernelblaster.knowledge.base import KnowledgeBase
from kernelblaster.knowledge.changes import KnowledgeChange, Provenance
from kernelblaster.knowledge.lessons import PER_SCOPE

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PROVENANCE = Provenance(run="run-a", model="scripted")


def change(kind: str, **fields) -> KnowledgeChange:
    return TypeAdapter(KnowledgeChange).validate_python({"kind": kind, "reason": "seen", **fields})


def proposal(name: str = "skewed_tiles", states=("busy",)) -> KnowledgeChange:
    summary = "Skew the tiles so that neighbours start apart"
    return change("add_technique", id=name, category="test", summary=summary, how_to=["skew"], states=states)


def applied(known, *changes, provenance=PROVENANCE):
    lines = []
    for it in changes:
        known, line = amend(known, it, provenance, NOW)
        lines.append(line)
    return known, lines


def test_a_lesson_is_remembered_with_its_origin():
    known, [line] = applied(document(), change("add_lesson", text="pad the last tile with zeros", technique="widen"))
    assert "applied" in line
    assert known.lessons[0].provenance == PROVENANCE
    selection = KnowledgeBase(known).select("busy", context(), np.random.default_rng(0), allowed=frozenset({"widen"}))
    assert [shown.text for shown in selection.lessons] == ["pad the last tile with zeros"]


@pytest.mark.parametrize(
    ("second", "refused"),
    [
        ("pad the last tile with zeros", True),
        ("Pad  the last tile, with ZEROS!", True),
        ("pad the very last tile with zeros", True),
        ("never pad anything that is read by vectors", False),
    ],
)
def test_a_lesson_that_is_known_is_refused(second, refused):
    known, lines = applied(
        document(), change("add_lesson", text="pad the last tile with zeros"), change("add_lesson", text=second)
    )
    assert ("refused" in lines[1]) is refused
    assert len(known.lessons) == (1 if refused else 2)


def test_a_scope_takes_only_so_many_lessons():
    texts = [f"remember number {number} and the word {'x' * (number + 1)} well" for number in range(PER_SCOPE + 1)]
    known, lines = applied(document(), *(change("add_lesson", text=text, technique="widen") for text in texts))
    assert len(known.lessons) == PER_SCOPE
    assert "enough" in lines[-1]


@pytest.mark.parametrize(("value", "state"), [(85, "slow"), (65, "busy")])
def test_a_moved_threshold_takes_effect_and_the_curated_rule_stays(value, state):
    known, [line] = applied(document(), change("adjust_rule", rule="busy.dram", metric=DRAM, value=value))
    assert "applied" in line
    assert known.states == document().states
    seen = KnowledgeBase(known).classify(profile({DRAM: 70.0 if value < 75 else 80.0}), facts(), None)
    assert seen.state == state


def test_a_prompt_can_name_what_may_be_moved():
    moved, _ = applied(document(), change("adjust_rule", rule="busy.dram", metric=DRAM, value=85))
    assert KnowledgeBase(moved).movable_thresholds(["busy"]) == [f"busy.dram: {DRAM} >= 85 (may be 60 to 90)"]
    assert KnowledgeBase(moved).movable_thresholds(["idle"]) == []


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"rule": "busy.dram", "metric": DRAM, "value": 5}, "outside"),
        ({"rule": "busy.dram", "metric": "other", "value": 70}, "no movable"),
        ({"rule": "nothing", "metric": DRAM, "value": 70}, "no rule"),
    ],
)
def test_a_threshold_does_not_leave_its_bounds(fields, why):
    known, [line] = applied(document(), change("adjust_rule", **fields))
    assert why in line
    assert known == document()


def test_the_last_of_two_adjustments_counts():
    first = change("adjust_rule", rule="busy.dram", metric=DRAM, value=85)
    second = change("adjust_rule", rule="busy.dram", metric=DRAM, value=65)
    known, _ = amend(document(), first, PROVENANCE, NOW)
    known, _ = amend(known, second, PROVENANCE, NOW.replace(year=2027))
    assert KnowledgeBase(known).classify(profile({DRAM: 70.0}), facts(), None).state == "busy"


def test_applying_again_after_a_resume_changes_nothing():
    changes = [change("adjust_rule", rule="busy.dram", metric=DRAM, value=85), proposal()]
    once, _ = applied(document(), *changes)
    twice, lines = applied(once, *changes)
    assert twice == once
    assert all("already applied" in line for line in lines)


def successes(count: int, problems: int, **fields):
    return [
        transition(f"s{number}", technique="skewed_tiles", problem=f"level1/{number % problems:03d}", **fields)
        for number in range(count)
    ]


def recorded(known, transitions):
    return KnowledgeBase(counted(known, *transitions))


def test_a_proposed_technique_is_tried_in_quarantine_and_marked():
    known, _ = applied(document(), proposal())
    base = KnowledgeBase(known)
    assert base.quarantined == {"skewed_tiles"}
    selection = base.select("busy", context(), np.random.default_rng(0), allowed=frozenset({"skewed_tiles"}))
    assert selection.quarantined
    assert selection.how_to == ("skew",)
    assert "skewed_tiles" not in base.states["slow"].techniques


@pytest.mark.parametrize(
    ("made", "released"),
    [
        (successes(3, 2), True),
        (successes(2, 2), False),
        (successes(9, 1), False),
        (successes(9, 3, verdict="wrong_values"), False),
        (successes(9, 3, speedup=0.9), False),
        (successes(9, 3, decision="inconclusive"), False),
        (successes(9, 3, weakly_verified=True), False),
    ],
)
def test_quarantine_ends_after_enough_successes_on_enough_problems(made, released):
    known, _ = applied(document(), proposal())
    assert (recorded(known, made).quarantined == set()) is released


def test_successes_on_different_kinds_of_device_do_not_add_up():
    known, _ = applied(document(), proposal())
    made = successes(4, 2)
    emulated = [it.model_copy(update={"device_kind": DeviceKind.EMULATED}) for it in made[2:]]
    assert recorded(known, [*made[:2], *emulated]).quarantined == {"skewed_tiles"}


@pytest.mark.parametrize("name", ["widen", "skewed_tiles"])
def test_a_technique_is_not_added_twice(name):
    known, _ = applied(document(), proposal())
    _, [line] = applied(known, proposal(name, states=("slow",)))
    assert "exists" in line


def test_quarantine_is_bounded():
    known, lines = applied(document(), *(proposal(f"idea_number_{number}") for number in range(OPEN_PROPOSALS + 1)))
    assert len(known.proposals) == OPEN_PROPOSALS
    assert "too many" in lines[-1]


def retire(**fields) -> KnowledgeChange:
    values = {"state": "busy", "technique": "narrow", "arch": "sm_90", "device_kind": "cuda"}
    return change("retire_technique", **(values | fields))


@pytest.mark.parametrize(
    ("sums", "retired"),
    [
        (gains(failed=8), True),
        (gains(failed=7), False),
        (gains(*[-0.1, -0.2, -0.15] * 3), True),
        (gains(*[0.0, 0.4, -0.2] * 3), False),
        (gains(*[0.5] * 10), False),
    ],
)
def test_retirement_needs_evidence(sums, retired):
    known, [line] = applied(document(statistics=[row("narrow", sums).model_dump()]), retire())
    assert ("applied" in line) is retired
    rng = np.random.default_rng(0)
    drawn = {KnowledgeBase(known).select("busy", context(), rng).technique for _ in range(300)}
    assert ("narrow" not in drawn) is retired


def test_retirement_holds_only_where_the_evidence_is_from():
    known, _ = applied(document(statistics=[row("narrow", gains(failed=8)).model_dump()]), retire())
    base, only = KnowledgeBase(known), frozenset({"narrow"})
    emulated = context(device_kind=DeviceKind.EMULATED)
    assert base.select("busy", emulated, np.random.default_rng(0), allowed=only).technique == "narrow"
    drawn = {base.select("busy", context(), np.random.default_rng(seed)).technique for seed in range(100)}
    assert "narrow" not in drawn


@pytest.mark.parametrize("fields", [{"device_kind": "emulated"}, {"arch": "sm_80"}, {"state": "slow"}])
def test_evidence_from_elsewhere_retires_nothing(fields):
    known = document(statistics=[row("narrow", gains(failed=50)).model_dump()])
    _, [line] = applied(known, retire(**fields))
    assert "refused" in line


@pytest.mark.parametrize(
    "content",
    [
        {"kind": "rewrite_everything", "reason": "r"},
        {"kind": "add_lesson", "reason": "r", "text": "short"},
        {"kind": "add_lesson", "reason": "r", "text": "x" * 400},
        {"kind": "add_lesson", "reason": "r", "text": "long enough to be kept", "helpful": 99},
        {"kind": "add_technique", "reason": "r", "id": "../etc", "category": "abc", "summary": "s" * 30},
        {"kind": "adjust_rule", "reason": "r", "rule": "busy.dram", "metric": DRAM, "value": "high"},
    ],
)
def test_ill_formed_changes_do_not_parse(content):
    with pytest.raises(ValidationError):
        TypeAdapter(KnowledgeChange).validate_python(content)
