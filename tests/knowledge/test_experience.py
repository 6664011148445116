"""The database of an experiment: what is counted, once, by many; what selection is told; the file that is exchanged."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sqlite3
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from knowledge_samples import context, document, gains, recorded, row, transition

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.errors import KnowledgeError, MachineError
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.knowledge.base import KnowledgeBase
from kernelblaster.knowledge.changes import AddLesson, AddTechnique, Provenance, RetireTechnique
from kernelblaster.knowledge.evidence import DocumentEvidence, TechniqueTotals
from kernelblaster.knowledge.experience import EXPERIENCE, FIRST_RELEASE, Experience, TableEvidence, stored_transitions
from kernelblaster.knowledge.schema import KnowledgeDocument, Lesson, LessonCount
from kernelblaster.knowledge.statistics import total
from kernelblaster.knowledge.store import KnowledgeStore
from kernelblaster.problems.families import OpFamily
from kernelblaster.problems.problem import Precision
from kernelblaster.replay.buffer import Query, ReplayBuffer

PROCESSES = multiprocessing.get_context("fork")
PROVENANCE = Provenance(run="run-a", model="scripted")


def begin(directory: Path, content: KnowledgeDocument | None = None) -> Experience:
    """An experience that starts from a document file."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "optimization_database.json"
    if not path.exists():
        path.write_text((content or document()).model_dump_json())
    return Experience(KnowledgeStore(path))


@pytest.fixture
def experience(tmp_path):
    with_file = begin(tmp_path / "experiment")
    yield with_file
    with_file.close()


def attempts(experience: Experience) -> int:
    return total(it.sums for it in experience.document().statistics).attempts


def exported(experience: Experience) -> KnowledgeDocument:
    return KnowledgeStore(experience.export()).load().document


def lesson(text: str) -> AddLesson:
    return AddLesson(kind="add_lesson", reason="seen", text=text)


# Counting


def test_a_transition_counts_once(experience):
    assert [experience.record(transition(slot)) for slot in "aabba"] == [True, False, True, False, False]
    assert attempts(experience) == 2
    assert [it.slot for it in experience.transitions.query()] == ["a", "b"]


def test_a_recording_that_is_replayed_counts_once_and_keeps_every_transition(experience):
    assert experience.record(transition("s", run="first", recording="r"))
    assert not experience.record(transition("s", run="second", recording="r"))
    assert not experience.record(transition("t", run="third", recording="r"))
    assert experience.record(transition("u", run="second", recording="r", technique="fuse"))
    assert attempts(experience) == 2
    assert experience.transitions.count() == 4


def test_an_unknown_family_is_refused_and_nothing_of_it_stored(experience):
    with pytest.raises(ValueError, match="interpretive_dance"):
        experience.record(transition("b", op_family="interpretive_dance"))
    assert (attempts(experience), experience.transitions.count()) == (0, 0)


made = st.builds(
    lambda slot, run, kind, outcome, **where: transition(slot, run=run, device_kind=kind, **outcome, **where),
    st.sampled_from("abcdef"),
    st.sampled_from(["run-a", "run-b"]),
    st.sampled_from(list(DeviceKind)),
    st.sampled_from(
        [
            {"speedup": 1.3},
            {"speedup": 0.6},
            {"decision": Decision.INCONCLUSIVE},
            {"verdict": Verdict.TIMEOUT},
            {"verdict": Verdict.WRONG_VALUES},
            {"speedup": None},
        ]
    ),
    technique=st.sampled_from(["widen", "fuse"]),
    state=st.sampled_from(["busy", "slow"]),
    arch=st.sampled_from(["sm_80", "sm_90"]),
    op_family=st.sampled_from(["softmax", "matmul"]),
    precision=st.sampled_from([Precision.FP16, Precision.FP32]),
    weakly_verified=st.booleans(),
)
contexts = st.builds(
    context,
    arch=st.sampled_from(["sm_80", "sm_90", "sm_120"]),
    device_kind=st.sampled_from(list(DeviceKind)),
    op_family=st.sampled_from([OpFamily.SOFTMAX, OpFamily.MATMUL, OpFamily.POOLING]),
    precision=st.sampled_from([Precision.FP16, Precision.FP32]),
)


def plain(evidence, state, where):
    """What was attempted, by technique and level, rounded as sums of different order may be."""
    found = evidence.of_techniques(["widen", "fuse", "narrow"], state, where)
    return {
        (name, level, weak): TechniqueTotals(*(round(value, 9) + 0.0 for value in totals))
        for name, levels in found.items()
        for level, weak, totals in levels
        if totals.attempts
    }


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(made, max_size=12), st.sampled_from(["busy", "slow", "elsewhere"]), contexts)
def test_tables_come_to_what_adding_up_all_transitions_comes_to(tmp_path_factory, transitions, state, where):
    """Statistics, and what selection is told at every level, whatever was recorded in whatever order."""
    experience = begin(tmp_path_factory.mktemp("e"))
    once = list({(it.run, it.slot): it for it in reversed(transitions)}.values())[::-1]
    for it in transitions:
        experience.record(it)
    expected = recorded(document(), *[it for it in transitions if it in once])
    found = experience.document()
    assert {(r.run, r.cell): r.sums.attempts for r in found.statistics} == {
        (r.run, r.cell): r.sums.attempts for r in expected.statistics
    }
    told = plain(TableEvidence(experience._database), state, where)
    assert told == plain(DocumentEvidence(found), state, where)
    experience.close()


def test_lessons_are_counted_by_run_and_added_up_by_kind(tmp_path):
    counts = {"earlier": LessonCount(helpful=2), "other": LessonCount(harmful=5, device_kind=DeviceKind.EMULATED)}
    known = document(lessons=[Lesson(id="a", text="a", counts=counts).model_dump(), {"id": "b", "text": "b"}])
    experience = begin(tmp_path, known)
    experience.record(transition("s", lessons=("a", "b")))
    experience.record(transition("t", lessons=("b",), verdict=Verdict.TIMEOUT))
    records = TableEvidence(experience._database).lesson_records(DeviceKind.CUDA)
    assert records == {"a": (3, 0), "b": (1, 1)}
    assert records == DocumentEvidence(exported(experience)).lesson_records(DeviceKind.CUDA)
    assert exported(experience).lessons[0].counts == {**counts, "run-a": LessonCount(helpful=1)}


def test_a_base_sees_what_is_recorded_after_it_was_made(experience):
    base = experience.base()
    for step in range(30):
        experience.record(transition(f"s{step}", technique="fuse", verdict=Verdict.TIMEOUT))
        experience.record(transition(f"t{step}", technique="widen", speedup=3.0))
    assert experience.base() is base
    chosen = base.select("busy", context(), np.random.default_rng(0))
    assert (chosen.technique, chosen.evidence_count) != ("fuse", 30)
    alone = KnowledgeBase(experience.document()).select("busy", context(), np.random.default_rng(0))
    assert alone.sampled_score == pytest.approx(chosen.sampled_score)


def test_a_proposal_is_released_by_its_successes(experience):
    change = AddTechnique(
        kind="add_technique", reason="seen", id="two_rows", category="memory", how_to=("Halve it.",),
        summary="Let every warp work on two short rows.", states=("busy",),
    )  # fmt: skip
    assert "applied" in experience.apply([change], PROVENANCE)[0]
    assert "refused" in experience.apply([change], PROVENANCE)[0]
    for number in range(3):
        assert "two_rows" in experience.base().quarantined
        experience.record(transition(f"s{number}", technique="two_rows", problem=f"level1/{number}"))
    assert "two_rows" not in experience.base().quarantined
    assert len(exported(experience).proposals["two_rows"].successes) == 3


def test_retirement_looks_at_what_was_measured(experience):
    change = RetireTechnique(
        kind="retire_technique", reason="useless", state="busy", technique="fuse", arch="sm_90",
        device_kind=DeviceKind.CUDA,
    )  # fmt: skip
    assert "too few" in experience.apply([change], PROVENANCE)[0]
    for step in range(8):
        experience.record(transition(f"s{step}", technique="fuse", verdict=Verdict.WRONG_VALUES))
    assert "applied" in experience.apply([change], PROVENANCE)[0]
    drawn = {experience.base().select("busy", context(), np.random.default_rng(seed)).technique for seed in range(40)}
    assert drawn == {"widen", "narrow"}
    assert attempts(experience) == 8


# Many writers, and kills


def _record_many(path: Path, writer: int, experience: Experience | None = None) -> None:
    experience = experience or Experience(KnowledgeStore(path))
    for step in range(10):
        experience.record(transition("shared", run="common"))
        experience.record(transition(f"step-{step}", run=f"run-{writer}"))
        if step % 4 == 0:
            experience.export()


def test_several_processes_write_at_once_and_nothing_is_lost_or_doubled(experience):
    writers = [PROCESSES.Process(target=_record_many, args=(experience.exchange.path, writer)) for writer in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert attempts(experience) == experience.transitions.count() == 3 * 10 + 1
    assert total(it.sums for it in exported(experience).statistics).attempts == 3 * 10 + 1


def _record_for_ever(path: Path) -> None:
    experience, step = Experience(KnowledgeStore(path)), 0
    while True:
        experience.record(transition(f"step-{step}"))
        experience.export()
        step += 1


@pytest.mark.parametrize("delay_s", [0.05, 0.11, 0.17, 0.23])
def test_a_writer_killed_at_any_moment_leaves_everything_whole(experience, delay_s):
    writer = PROCESSES.Process(target=_record_for_ever, args=(experience.exchange.path,))
    writer.start()
    time.sleep(delay_s)
    os.kill(writer.pid, signal.SIGKILL)
    writer.join(10)
    counted = attempts(experience)
    assert counted == experience.transitions.count()
    assert experience.exchange.load()
    assert experience.record(transition("after"))
    assert total(it.sums for it in exported(experience).statistics).attempts == counted + 1


def test_a_full_disk_loses_nothing(experience):
    experience.record(transition("a"))
    with experience._database.reading() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(MachineError, match="full"):
        _record_many(experience.exchange.path, 0, experience)
    assert attempts(experience) == experience.transitions.count()


# The document file


def test_what_is_exported_reads_back_the_same(experience):
    experience.record(transition("a", lessons=("x",)))
    experience.record(transition("b", verdict=Verdict.TIMEOUT))
    experience.apply([lesson("rows shorter than a warp leave lanes without data")], PROVENANCE)
    known = experience.document()
    assert exported(experience) == known
    assert begin(experience.exchange.path.parent).document() == known
    first = experience.export().read_bytes()
    assert experience.export().read_bytes() == first


def test_the_whole_document_survives_the_tables(tmp_path):
    known = document(
        statistics=[row("widen", gains(0.5, failed=2), weakly_verified=True).model_dump()],
        imported_priors=[
            {"state": "busy", "technique": "fuse", "mean_log_gain": 0.2, "weight": 0.5, "source": "old.json"}
        ],
        runs={"run-a": {"applied": ["00ff"], "updated_at": "2026-01-02T03:04:05Z"}},
    )
    assert exported(begin(tmp_path, known)) == known


def test_what_somebody_adds_to_the_file_is_taken_in_at_the_next_export_and_start(experience):
    experience.record(transition("a"))
    experience.exchange.update(lambda known: recorded(known, transition("z", run="guest")))
    assert total(it.sums for it in exported(experience).statistics).attempts == 2
    assert attempts(experience) == 2
    experience.exchange.update(lambda known: known.model_copy(update={"about": "edited"}))
    again = begin(experience.exchange.path.parent)
    assert again.document().about == "edited"
    assert attempts(again) == 2
    assert experience.base().document.about == "edited"


def test_a_file_that_was_removed_is_written_again(experience):
    experience.record(transition("a"))
    path = experience.export()
    path.unlink()
    again = begin_without_file(path)
    assert attempts(again) == 1
    assert total(it.sums for it in exported(again).statistics).attempts == 1


def begin_without_file(path: Path) -> Experience:
    return Experience(KnowledgeStore(path))


def test_without_file_and_database_there_is_a_hint(tmp_path):
    with pytest.raises(KnowledgeError, match=r"optimization_database\.json") as caught:
        begin_without_file(tmp_path / "optimization_database.json")
    assert caught.value.hint


@pytest.mark.parametrize("started", [False, True])
def test_a_damaged_file_is_kept_and_never_written_over(tmp_path, started):
    if started:
        begin(tmp_path).close()
    path = tmp_path / "optimization_database.json"
    path.write_text('{"format": "kernelblaster-knowledge-3", "states": {')
    with pytest.raises(KnowledgeError, match="damaged"):
        begin(tmp_path)
    assert path.read_text().endswith("{")
    assert list(tmp_path.glob("*.damaged-*"))


def test_experiences_with_a_common_past_count_it_once(tmp_path):
    ancestor = begin(tmp_path / "ancestor")
    ancestor.record(transition("a", run="common"))
    left = begin(tmp_path / "left", exported(ancestor))
    right = begin(tmp_path / "right", exported(ancestor))
    left.record(transition("a", run="left"))
    for slot in "ab":
        right.record(transition(slot, run="right"))
    left.merge([right.export(), ancestor.export(), right.export()])
    assert attempts(left) == 4
    assert not left.record(transition("b", run="right"))


def test_merging_either_way_learns_the_same(tmp_path):
    left, right = begin(tmp_path / "left"), begin(tmp_path / "right")
    left.record(transition("a", run="left"))
    left.record(transition("b", run="left", technique="fuse"))
    left.apply([lesson("vector loads need aligned row starts in every row")], PROVENANCE)
    right.record(transition("a", run="right"))
    right.apply([lesson("a barrier inside a divergent branch hangs the block")], PROVENANCE)
    before = left.export(), right.export()
    left.merge([before[1]])
    right.merge([before[0]])
    forth, back = left.document(), right.document()
    for part in ("statistics", "lessons", "changes", "runs", "proposals"):
        assert getattr(forth, part) == getattr(back, part)


def test_old_runs_are_sealed_to_bound_the_file_and_then_count_nothing_more(tmp_path):
    begin(tmp_path).close()
    store = KnowledgeStore(tmp_path / "optimization_database.json")
    for run in ("first", "second", "third"):
        experience = Experience(store, max_digests=8)
        for step in range(4):
            assert experience.record(transition(f"s{step}", run=run))
        known = exported(experience)
    assert known.runs["first"].sealed
    assert sum(len(run.applied) for run in known.runs.values()) == 8
    assert not experience.record(transition("s9", run="first"))
    assert total(it.sums for it in known.statistics).attempts == 12


# What the first release left


def test_transitions_of_the_first_release_are_taken_over_and_counted_no_second_time(tmp_path):
    earlier = [transition("a"), transition("b"), transition("late")]
    known = recorded(document(), *earlier[:2])
    runs = {"run-a": {"applied": [it.digest for it in earlier[:2]], "updated_at": "2026-01-02T03:04:05Z"}}
    old = ReplayBuffer.of_first_release(tmp_path / FIRST_RELEASE)
    old.extend(earlier)
    assert stored_transitions(tmp_path).query() == earlier
    content = json.loads(known.model_dump_json()) | {"runs": runs}
    experience = begin(tmp_path, KnowledgeDocument.model_validate_json(json.dumps(content)))
    assert experience.transitions.query(Query(run="run-a")) == earlier
    assert [experience.record(it) for it in earlier] == [False, False, True]
    assert attempts(experience) == 3
    assert stored_transitions(tmp_path).query() == earlier


def test_reading_transitions_of_a_finished_experiment_asks_for_no_document(experience):
    experience.record(transition("a"))
    experience.close()
    experience.exchange.path.unlink()
    assert stored_transitions(experience.exchange.path.parent).count() == 1


def test_what_is_looked_up_at_a_step_is_found_by_index(experience):
    """A scan would make a step cost more with every transition that is stored."""
    statements: list[str] = []
    with experience._database.reading() as connection:
        connection.set_trace_callback(statements.append)
    experience.record(transition("a", lessons=("x",)))
    experience.base().select("busy", context(), np.random.default_rng(0))
    experience.close()
    connection = sqlite3.connect(experience.exchange.path.with_name(EXPERIENCE))
    for statement in statements:
        if not statement.lstrip().startswith(("SELECT", "INSERT")):
            continue
        for *_, plan in connection.execute(f"EXPLAIN QUERY PLAN {statement}"):
            assert not plan.startswith("SCAN") or plan.split()[1] == "definitions", (statement, plan)
