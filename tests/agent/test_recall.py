"""A search begins with the verified kernel that the knowledge base holds of its problem, if it is right and faster."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from agent_support import (
    FLOOR_US,
    START_US,
    CommentEvaluator,
    EventList,
    ScriptedModel,
    answer,
    kernel,
    make_context,
    make_knowledge,
    make_problem,
)

from kernelblaster.agent.archive import Archive, ArchivedAttempt
from kernelblaster.agent.graph import run_problem
from kernelblaster.agent.outcome import RECALLED, Incumbent, OutcomeStatus, ProblemOutcome, StopReason
from kernelblaster.agent.state import Tried
from kernelblaster.config import SearchPart
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.evaluation.results import Verdict
from kernelblaster.knowledge.experience import Experience
from kernelblaster.knowledge.schema import Core, ShapeRegime
from kernelblaster.models.base import Purpose
from kernelblaster.problems.families import OpFamily
from kernelblaster.problems.problem import Precision
from kernelblaster.problems.start import read_start

STORED = kernel(2.0, tag="_stored")
OWN = Core(
    problem="level1/023", op_family=OpFamily.SOFTMAX, arch="sm_90", device_kind=DeviceKind.EMULATED,
    precision=Precision.FP16, regime=ShapeRegime.SHORT, median_us=50.0, attainable_us=5.0, source="int bare;",
    whole=STORED,
)  # fmt: skip
WAYS = pytest.mark.parametrize("archive", [True, False], ids=["archive", "chains"])


def poor(rollout: int, step: int, attempt: int) -> str:
    """No reply is as fast as what is known."""
    return answer(kernel(0.9 - 0.01 * (10 * step + rollout), tag=f"_{rollout}_{step}"))


class Searched:
    """A search from a knowledge base that holds `cores`; started again in the same place, it goes on."""

    def __init__(self, root: Path, script=poor, *, cores: tuple[Core, ...] = (OWN,), **changes) -> None:
        root.mkdir(exist_ok=True)
        if not (root / "optimization_database.json").exists():
            make_knowledge(root).update(lambda known: known.model_copy(update={"cores": cores}))
        self.events = changes.pop("events", EventList())
        self.model = ScriptedModel(root / "model.log", script)
        self.evaluator = CommentEvaluator(root / "evaluations.log")
        self.context = make_context(
            root, self.model, self.evaluator, events=self.events, **{"rollouts": 2, "archive": True, **changes}
        )
        self.outcome: ProblemOutcome = asyncio.run(run_problem(self.context))

    @property
    def prompts(self) -> list[str]:
        return [one.messages[-1].content for one in self.model.requests if one.purpose is Purpose.GENERATE]


@WAYS
def test_what_one_search_leaves_the_next_begins_with_and_ends_with_when_nothing_beats_it(
    tmp_path: Path, archive: bool
) -> None:
    def climbing(rollout: int, step: int, attempt: int) -> str:
        return answer(kernel(1.0 + step, tag=f"_{rollout}_{step}"))

    first = Searched(tmp_path / "first", climbing, cores=(), archive=archive)
    assert first.outcome.recalled is None
    left = first.context.experience.export()
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "optimization_database.json").write_bytes(left.read_bytes())
    second = Searched(tmp_path / "second", archive=archive)
    assert second.outcome.status is OutcomeStatus.IMPROVED
    assert second.outcome.final_sha256 == first.outcome.final_sha256
    assert second.outcome.speedup == first.outcome.speedup == 4.0
    assert second.outcome.reason == "4.000x over the start, modelled; recalled from the knowledge base"
    (told,) = second.events.of("recalled")
    assert (told.accepted, told.speedup, told.start) == (True, 4.0, second.outcome.start.source_sha256)
    (finalist,) = second.events.of("finalist_measured")
    assert (finalist.candidate, finalist.speedup, finalist.rejected) == (second.outcome.final_sha256, 4.0, None)
    cores = second.context.experience.document().cores
    assert [core.whole for core in cores] == [first.context.files.candidate(first.outcome.final_sha256)]


@WAYS
def test_every_first_reply_improves_it_and_is_told_how_it_came_about(tmp_path: Path, archive: bool) -> None:
    searched = Searched(tmp_path, archive=archive, steps=1)
    stored = source_digest(STORED)
    assert {event.parent for event in searched.events.of("step_started")} == {stored}
    assert searched.events.of("round_started")[0].incumbent == stored
    for prompt in searched.prompts:
        assert f"# Kernel to improve\n```cuda\n{STORED}```" in prompt
        assert f"- {RECALLED}: faster 2.00x, accepted" in prompt
    assert searched.context.experience.transitions.count() == 2
    assert sum(searched.outcome.verdicts.values()) == 2


def test_replies_that_beat_it_are_measured_against_the_start_and_stand_on_it(tmp_path: Path) -> None:
    def better(rollout: int, step: int, attempt: int) -> str:
        return answer(kernel(2.5 + step + 0.1 * rollout, tag=f"_{rollout}_{step}"))

    searched = Searched(tmp_path, better)
    assert searched.outcome.speedup == pytest.approx(5.6)
    assert "recalled" not in searched.outcome.reason
    assert searched.outcome.recalled.accepted
    assert {event.parent for event in searched.events.of("step_started") if "step-1" in event.slot} == {
        source_digest(STORED)
    }


def test_without_recall_the_search_begins_on_the_start(tmp_path: Path) -> None:
    searched = Searched(tmp_path, ablate=(SearchPart.RECALL, SearchPart.PAIR_LESSONS))
    assert searched.outcome.status is OutcomeStatus.NO_IMPROVEMENT
    assert searched.events.of("recalled") == []
    assert not any(RECALLED in prompt for prompt in searched.prompts)


@pytest.mark.parametrize(
    ("source", "verdict"),
    [
        (kernel(9.0, verdict=Verdict.WRONG_VALUES), Verdict.WRONG_VALUES),
        (kernel(9.0, verdict=Verdict.COMPILE_ERROR), Verdict.COMPILE_ERROR),
        (kernel(1.0, tag="_same"), Verdict.CORRECT),
        (kernel(0.5), Verdict.CORRECT),
    ],
)
def test_a_stored_kernel_that_is_refused_now_or_no_faster_is_told_and_left_alone(
    tmp_path: Path, source: str, verdict: Verdict
) -> None:
    def good(rollout: int, step: int, attempt: int) -> str:
        return answer(kernel(1.5 + 0.1 * step, tag=f"_{rollout}_{step}"))

    searched = Searched(tmp_path, good, cores=(OWN.model_copy(update={"whole": source}),))
    (told,) = searched.events.of("recalled")
    assert (told.accepted, told.verdict) == (False, verdict)
    assert told.reason
    assert searched.outcome.speedup == pytest.approx(1.8)
    assert searched.events.of("round_started")[0].incumbent == searched.outcome.start.source_sha256
    assert not any(RECALLED in prompt for prompt in searched.prompts)


def _start(root: Path) -> str:
    (root / "there").mkdir()
    return read_start(make_problem(root / "there"))


def test_the_start_itself_and_kernels_that_were_kept_in_part_are_not_recalled(tmp_path: Path) -> None:
    start = Searched(tmp_path / "start", cores=(OWN.model_copy(update={"whole": _start(tmp_path)}),))
    assert start.events.of("recalled") == []
    part = Searched(tmp_path / "part", cores=(OWN.model_copy(update={"whole": None}),))
    assert part.events.of("recalled") == []


def test_a_recorded_search_goes_its_own_way(tmp_path: Path) -> None:
    searched = Searched(tmp_path, recording="of a search without")
    assert searched.events.of("recalled") == []
    assert searched.events.of("round_started")[0].incumbent == searched.outcome.start.source_sha256


@WAYS
def test_one_near_its_attainable_time_ends_the_search_without_a_question(tmp_path: Path, archive: bool) -> None:
    fast = OWN.model_copy(update={"whole": kernel(START_US / FLOOR_US, tag="_fast")})
    ablate = (SearchPart.REVIEW, SearchPart.PAIR_LESSONS)
    searched = Searched(tmp_path, cores=(fast,), archive=archive, ablate=ablate)
    assert searched.model.requests == []
    assert {result.stop for result in searched.outcome.rollouts} == {StopReason.NEAR_ATTAINABLE}
    assert searched.outcome.speedup == START_US / FLOOR_US


@WAYS
@pytest.mark.parametrize("moment", ["start_profiled", "recalled", "round_started", "step_started", "finalist_measured"])
def test_a_killed_search_goes_on_from_the_same_kernel_whatever_was_learned_meanwhile(
    tmp_path: Path, moment: str, archive: bool
) -> None:
    class Dying(EventList):
        def emit(self, event) -> None:
            super().emit(event)
            if event.kind == moment:
                raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        Searched(tmp_path, events=Dying(), archive=archive)
    chosen = (tmp_path / "out" / "recall.json").exists()
    assert chosen is (moment != "start_profiled")
    if chosen:
        faster = OWN.model_copy(update={"whole": kernel(3.0, tag="_later"), "median_us": 33.0})
        experience = Experience(make_knowledge(tmp_path))
        experience.remember(faster)
        experience.close()
    again = Searched(tmp_path, archive=archive)
    assert again.outcome.recalled.candidate == source_digest(STORED)
    assert again.outcome.final_sha256 == source_digest(STORED)
    assert len(again.evaluator.calls) == len(set(again.evaluator.calls))


def test_a_search_that_began_without_goes_on_without(tmp_path: Path) -> None:
    """One of an earlier version, or one that was ablated: its replies belong to the path that it took."""
    first = Searched(tmp_path, steps=1, ablate=(SearchPart.RECALL, SearchPart.PAIR_LESSONS))
    again = Searched(tmp_path, steps=1)
    assert again.events.of("recalled") == []
    (tmp_path / "out" / "recall.json").unlink()
    older = Searched(tmp_path, steps=1)
    assert older.events.of("recalled") == []
    assert older.outcome.final_sha256 == first.outcome.final_sha256
    assert (again.model.requests, older.model.requests) == ([], [])


def test_an_attempt_of_round_0_is_on_every_island() -> None:
    start = Incumbent(sha256="start", evaluation="e")
    made = Incumbent(sha256="known", evaluation="e", gain=2.0)
    tried = Tried(technique=RECALLED, outcome="faster", speedup=2.0, accepted=True)
    known = ArchivedAttempt(
        slot="s", round=0, generation=0, index=0, parent="start", tried=tried, candidate="known", verdict="correct",
        made=made,
    )  # fmt: skip
    handed = Archive(start, 4.0, [known], islands=3).hand_out(1, 7)
    assert [one.parent for one in handed] == [made] * 7
    assert not any(one.donor for one in handed)
    elsewhere = known.model_copy(update={"round": 1, "generation": 1})
    assert {one.parent.sha256 for one in Archive(start, 4.0, [elsewhere], islands=3).hand_out(1, 7)} == {
        "start",
        "known",
    }
