"""The shipped knowledge base holds what the kept transitions say, and learning can leave problems out."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from knowledge_samples import facts, transition

from kernelblaster import learn_knowledge, read_knowledge, write_knowledge
from kernelblaster.agent.files import ProblemFiles
from kernelblaster.agent.outcome import OutcomeStatus, ProblemOutcome
from kernelblaster.config import RunConfig
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.knowledge.experience import Experience
from kernelblaster.knowledge.relearn import curated, relearn
from kernelblaster.knowledge.schema import StatisticsRow
from kernelblaster.knowledge.store import KnowledgeStore, seed_path
from kernelblaster.models.base import Purpose, Reply, Request, Usage
from kernelblaster.problems.families import OpFamily
from kernelblaster.problems.tags import Split
from kernelblaster.records.layout import RunLayout
from kernelblaster.replay.files import read_transitions
from kernelblaster.replay.transition import Transition
from kernelblaster.runs.recredit import recredited
from kernelblaster.runs.starting_knowledge import choose_knowledge

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks" / "forty"))

from archive import OUT, unpack  # noqa: E402

KEPT = sorted((ROOT / "docs" / "results" / "measured_transitions").glob("*.jsonl"))
SEARCHES = {"forty": "forty", "forty/again": "forty_again", "forty/third": "forty_third"}
"""Directory of an archive -> its experiment."""
REFUSED_WRONGLY = "34e9fbb5b471f9a1"
"""A reply to level2/058 that the judge of its day took for a cheat."""
HELD_OUT = {"level1/089", "level1/095", "level3/043"}
"""Problems of `Split.HELD_OUT` that the recorded searches had."""


@pytest.fixture(scope="module")
def kept() -> list[Transition]:
    return [one for path in KEPT for one in read_transitions(path)]


def by_cell(rows: Iterable[StatisticsRow]) -> dict[tuple[str, str], tuple[int, float, float]]:
    return {
        (row.run, row.cell.model_dump_json()): (
            row.sums.attempts,
            round(row.sums.sum_gain, 9),
            round(row.sums.sum_log, 9),
        )
        for row in rows
    }


def test_its_statistics_follow_from_the_transitions_that_are_kept(kept: list[Transition]) -> None:
    shipped = read_knowledge().document
    own = {one.as_evidence().run for one in kept}
    learned = relearn(shipped, kept)
    assert not learned.refused
    found = by_cell(row for row in shipped.statistics if row.run in own)
    assert found == by_cell(learned.document.statistics)


@pytest.mark.slow
def test_the_documented_command_makes_the_shipped_file(tmp_path: Path) -> None:
    sources = list(KEPT)
    for directory, experiment in SEARCHES.items():
        unpack(ROOT / "docs" / "results" / directory / "run.tar.xz", tmp_path)
        sources.append(tmp_path / OUT / "kernelbench-cuda" / "fp16" / experiment)
    learned = learn_knowledge(sources, without_transitions=[REFUSED_WRONGLY])
    made = tmp_path / "optimization_database.json"
    write_knowledge(learned.base, made)
    assert made.read_bytes() == seed_path().read_bytes()
    assert learned.refused == {"left out by name": 1}


def test_no_judgement_that_was_a_mistake_is_in_it() -> None:
    shipped = read_knowledge().document
    assert REFUSED_WRONGLY not in {digest for run in shipped.runs.values() for digest in run.applied}
    assert not any(Verdict.REWARD_HACK in row.sums.failures for row in shipped.statistics)


def test_a_transition_is_left_out_by_name(tmp_path: Path) -> None:
    state = next(iter(read_knowledge().states))
    made = [transition(slot, state=state) for slot in ("a", "b")]
    file = tmp_path / "records.jsonl"
    file.write_text("".join(f"{one.model_dump_json()}\n" for one in made))
    learned = learn_knowledge([file], without_transitions=[made[0].digest])
    assert (learned.counted, learned.refused) == (1, {"left out by name": 1})
    assert [run.applied for run in learned.base.document.runs.values()] == [(made[1].digest,)]
    with pytest.raises(UsageError, match="unheard"):
        learn_knowledge([file], without_transitions=["unheard"])


def test_what_is_kept_was_measured_and_says_by_what(kept: list[Transition]) -> None:
    techniques = read_knowledge().techniques
    for one in kept:
        assert (one.device_kind, one.arch) == (DeviceKind.CUDA, "sm_90")
        assert one.credited in techniques
        assert one.headroom is not None
        if one.speedup is not None and one.decision is not Decision.INCONCLUSIVE:
            assert (one.speedup > 1) is (one.decision is Decision.FASTER)
        assert (one.verdict is Verdict.CORRECT) is (one.speedup is not None)


def test_a_run_begins_with_it_and_says_what_was_measured_there(tmp_path: Path) -> None:
    config = RunConfig(out=tmp_path)
    told = {
        kind: choose_knowledge(config, RunLayout.of(config), facts().model_copy(update={"kind": kind})).reason
        for kind in DeviceKind
    }
    attempts = sum(row.sums.attempts for row in read_knowledge().document.statistics)
    assert str(attempts) in told[DeviceKind.CUDA]
    assert not any(character.isdigit() for character in told[DeviceKind.EMULATED])


def test_learning_for_a_study_holds_nothing_of_what_it_asks_on(kept: list[Transition]) -> None:
    whole = learn_knowledge(KEPT)
    train = learn_knowledge(KEPT, split=Split.TRAIN)
    held = [one for one in kept if one.problem in HELD_OUT]
    assert held
    assert train.refused == {"outside the scope": len(held)}
    assert whole.counted == train.counted + len(held)
    assert HELD_OUT & {core.problem for core in whole.base.document.cores}
    assert not HELD_OUT & {core.problem for core in train.base.document.cores}
    without = learn_knowledge(KEPT, without_families=["scan"]).base.document
    assert OpFamily.SCAN not in {row.cell.op_family for row in without.statistics}
    assert OpFamily.SCAN not in {core.op_family for core in without.cores}


def test_a_line_that_lacks_what_a_transition_needs_is_refused(tmp_path: Path) -> None:
    whole, lacking = transition("a"), transition("b").model_dump_json(exclude={"state"})
    file = tmp_path / "records.jsonl"
    file.write_text(f"{whole.model_dump_json()}\n{lacking}\n")
    with pytest.raises(UsageError, match="line 2"):
        learn_knowledge([file])
    file.write_text(f"{whole.model_dump_json()}\n")
    assert read_transitions(file) == [whole]


def test_an_experiment_brings_the_final_kernels_of_its_searches_and_not_what_it_began_with(tmp_path: Path) -> None:
    shipped = read_knowledge().document
    made, began = (
        shipped.cores[0].model_copy(update={"problem": "level1/007", "whole": whole, "source": whole})
        for whole in ("int made;", "int began;")
    )
    store = KnowledgeStore(tmp_path / "optimization_database.json")
    store.write(curated(shipped).model_copy(update={"cores": (*shipped.cores, made, began)}))
    search = tmp_path / "model" / "level1" / "007_Product"
    search.mkdir(parents=True)
    (tmp_path / "model" / "run.json").write_text("{}")
    outcome = ProblemOutcome(
        problem="level1/007", status=OutcomeStatus.IMPROVED, final_sha256=source_digest("int made;")
    )
    (search / "outcome.json").write_text(outcome.model_dump_json())
    experience = Experience(store)
    experience.record(transition("a", state=next(iter(shipped.states))))
    experience.close()
    learned = learn_knowledge([*KEPT, tmp_path])
    assert learned.counted == learn_knowledge(KEPT).counted + 1
    assert set(learned.base.document.cores) == {*shipped.cores, made}


def test_an_experiment_is_credited_by_the_detectors_of_today(tmp_path: Path) -> None:
    """What a run was credited with when it was made may have rested on a listing without instructions."""
    shipped = read_knowledge().document
    search = ProblemFiles(tmp_path / "model" / "level1" / "023_Softmax")
    search.candidate_path("any").parent.mkdir(parents=True)
    (tmp_path / "model" / "run.json").write_text("{}")
    parent = search.put_candidate("void launch_gpu_implementation() {}")
    candidate = search.put_candidate('void launch_gpu_implementation() { asm("wgmma.mma_async.sync.aligned"); }')
    stored = transition("a", state=next(iter(shipped.states))).model_copy(
        update={
            "parent_sha256": parent,
            "candidate_sha256": candidate,
            "technique": "warp_specialization",
            "declared": (),
            "done": "launch_bounds_tuning",
        }
    )
    store = KnowledgeStore(tmp_path / "optimization_database.json")
    store.write(curated(shipped))
    experience = Experience(store)
    experience.record(stored)
    experience.close()
    (row,) = learn_knowledge([tmp_path]).base.document.statistics
    assert row.cell.technique == "wgmma_tensor_cores"
    search.candidate_path(parent).unlink()
    (kept,) = learn_knowledge([tmp_path]).base.document.statistics
    assert kept.cell.technique == "launch_bounds_tuning", "one kernel alone says nothing new"


def test_what_a_reply_declares_is_read_anew(tmp_path: Path) -> None:
    """Earlier versions stored every word of its line."""
    techniques = read_knowledge().techniques
    search = ProblemFiles(tmp_path / "model" / "level1" / "023_Softmax")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "run.json").write_text("{}")
    search.candidate_path("any").parent.mkdir(parents=True)
    names = [search.put_candidate(f'void launch() {{ asm("{code}"); }}') for code in ("nop", "stmatrix.x4")]
    stored = transition("a").model_copy(
        update={
            "parent_sha256": names[0],
            "candidate_sha256": names[1],
            "technique": "fused_operations",
            "declared": ("stmatrix", "epilogue"),
        }
    )
    (unread,) = recredited(tmp_path, [stored], techniques)
    assert (unread.declared, unread.done) == (stored.declared, "fused_operations")
    request = Request(slot="a/attempt-0", purpose=Purpose.GENERATE, messages=())
    usage = Usage(prompt_tokens=1, completion_tokens=1, dollars=None)
    search.put_reply(request, Reply(text="TECHNIQUES: stmatrix epilogue", usage=usage, model="scripted"))
    (read,) = recredited(tmp_path, [stored], techniques)
    assert (read.declared, read.done) == (("stmatrix_epilogue",), "stmatrix_epilogue")


def test_learning_again_counts_nothing_twice() -> None:
    once = learn_knowledge(KEPT)
    again = learn_knowledge([*KEPT, *KEPT], once.base)
    assert again.base.document == once.base.document
    assert again.refused == {"counted before": once.counted}
    assert curated(once.base.document).statistics == ()
