"""The archive hands out replies: best of n, then the most promising kernels, one crossover; resumed at every place."""

from __future__ import annotations

import asyncio
import math
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from agent_support import FLOOR_US, START_US, EventList, ScriptedModel, answer, kernel, make_context
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.agent.archive import Archive, ArchivedAttempt
from kernelblaster.agent.graph import run_problem
from kernelblaster.agent.outcome import Incumbent, ProblemOutcome
from kernelblaster.agent.state import Tried
from kernelblaster.evaluation.results import Verdict

SPEEDS = {1: (2.0, 3.0, 0.5, 2.5), 2: (2.2, 3.5, 2.6, 3.6), 3: (3.7, 3.8, 3.9, 4.0), 4: (1.0, 1.0, 1.0, 1.0)}
"""Step -> speed of each rollout's kernel."""


def climbing(rollout: int, step: int, attempt: int) -> str:
    return answer(kernel(SPEEDS[step][rollout], tag=f"_{rollout}_{step}"))


class Killed(Exception):
    """The process is gone."""


def searched(root: Path, script=climbing, **changes) -> tuple[ProblemOutcome, EventList, ScriptedModel]:
    root.mkdir(exist_ok=True)
    events, model = EventList(), ScriptedModel(root / "model.log", script)
    settings = {"rollouts": 4, "steps": 4, "patience": 9, "archive": True, **changes}
    context = make_context(root, model, events=events, **settings)
    return asyncio.run(run_problem(context)), events, model


def test_best_of_n_comes_first_then_the_two_fastest_of_each_island_and_one_crossover(tmp_path: Path) -> None:
    outcome, events, model = searched(tmp_path)
    first, second, third, _ = events.of("handed_out")
    start = events.of("round_started")[0].incumbent
    assert {one.parent.sha256 for one in first.allocations} == {start}
    sources = {event.slot: event.candidate for event in events.of("generated")}
    of = {place: sources[f"level1/023/r1/rollout-{place[0]}/step-{place[1]}/attempt-0"] for place in [(0, 1), (1, 1)]}
    assert [one.parent.sha256 for one in second.allocations[:2]] == [of[0, 1], of[1, 1]]
    assert [bool(one.donor) for one in second.allocations] == [False, False, False, True]
    assert second.allocations[3].parent.sha256 == of[1, 1]
    assert second.allocations[3].donor == of[0, 1]
    assert not any(one.donor for one in third.allocations)
    crossing = next(request for request in model.requests if "rollout-3/step-2" in request.slot)
    assert "speed: 2.0" in crossing.messages[-1].content
    assert outcome.speedup == 4.0
    assert outcome.transitions == 16


def test_attempts_on_a_kernel_are_remembered_over_rollouts_and_never_repeated(tmp_path: Path) -> None:
    def failing(rollout: int, step: int, attempt: int) -> str:
        return answer(kernel(0.5, tag=f"_{rollout}_{step}", verdict=Verdict.WRONG_VALUES if step == 1 else "correct"))

    _, events, model = searched(tmp_path, failing, rollouts=2, steps=3, repairs=0)
    drawn = [event.technique for event in events.of("selected")]
    assert len(set(drawn)) == len(drawn) == 6
    last = next(request for request in model.requests if "rollout-1/step-3" in request.slot)
    assert last.messages[-1].content.count("it is a wrong_values") == 2
    assert last.messages[-1].content.count("slower 0.50x") == 2


@pytest.mark.parametrize("calls", [1, 6, 13])
def test_a_search_that_is_killed_and_continued_ends_as_one_that_was_not(tmp_path: Path, calls: int) -> None:
    undisturbed, _, _ = searched(tmp_path / "whole")
    left = calls

    def dying(rollout: int, step: int, attempt: int) -> str:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed
        return climbing(rollout, step, attempt)

    with pytest.raises(Killed):
        searched(tmp_path / "killed", dying)
    continued, events, model = searched(tmp_path / "killed")
    assert (continued.final_sha256, continued.speedup) == (undisturbed.final_sha256, undisturbed.speedup)
    assert continued.transitions == undisturbed.transitions
    assert len(model.calls) - len(undisturbed.finalists) <= 16 + 1 + 4
    assert [event.generation for event in events.of("handed_out")] == [1, 2, 3, 4]


def test_a_search_whose_results_are_lost_finds_its_attempts_again(tmp_path: Path) -> None:
    first, told, _ = searched(tmp_path)
    shutil.rmtree(tmp_path / "out" / "rollouts")
    again, retold, model = searched(tmp_path)
    assert again.final_sha256 == first.final_sha256
    assert model.requests == []
    assert {event.identity for event in retold.events} == {event.identity for event in told.events}


def test_a_kernel_at_its_attainable_time_ends_the_round(tmp_path: Path) -> None:
    fast = START_US / FLOOR_US
    outcome, events, _ = searched(tmp_path, lambda r, s, a: answer(kernel(fast, tag=f"_{r}")), least_headroom=1.5)
    assert len(events.of("handed_out")) == 1
    assert outcome.speedup == fast


@pytest.mark.parametrize(("pytorch_us", "steps"), [(0.9 * FLOOR_US, 3), (1.1 * FLOOR_US, 1)])
@pytest.mark.parametrize("archive", [True, False])
def test_while_pytorch_is_faster_something_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytorch_us: float, steps: int, archive: bool
) -> None:
    """Whatever the estimate of the attainable time says."""
    known = SimpleNamespace(times={name: SimpleNamespace(us=us) for name, us in (("a", 99.0), ("b", pytorch_us))})
    monkeypatch.setattr("kernelblaster.agent.context.times_on", lambda *asked: known)

    def script(rollout: int, step: int, attempt: int) -> str:
        return answer(kernel(START_US / FLOOR_US - 0.01 * step, tag=f"_{step}"))

    outcome, events, _ = searched(tmp_path, script, rollouts=1, steps=3, archive=archive)
    assert len(events.of("step_started")) == steps
    assert outcome.pytorch_us == {"a": 99.0, "b": pytorch_us}


def test_generations_without_a_gain_end_the_round_and_the_next_one_goes_on_with_the_best(tmp_path: Path) -> None:
    def script(rollout: int, step: int, attempt: int) -> str:
        return answer(kernel(2.0 if step == 1 and rollout == 0 else 1.0, tag=f"_{rollout}_{step}"))

    _, events, _ = searched(tmp_path, script, patience=2, rounds=2, steps=9, rollouts=2)
    handed = events.of("handed_out")
    assert [(event.round, event.generation) for event in handed] == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]
    best = handed[1].allocations[0].parent.sha256
    assert {one.parent.sha256 for one in handed[3].allocations} == {best}


@st.composite
def histories(draw: st.DrawFn) -> list[ArchivedAttempt]:
    known, attempts = [Incumbent(sha256="start", evaluation="e")], []
    for number in range(draw(st.integers(0, 20))):
        parent = draw(st.sampled_from(known))
        speedup = draw(st.floats(0.5, 3))
        made = None
        if speedup > 1.01:
            made = Incumbent(sha256=f"k{number}", evaluation="e", gain=parent.gain * speedup)
            known.append(made)
        tried = Tried(technique="t", outcome="x", speedup=speedup, accepted=made is not None)
        headroom = draw(st.none() | st.floats(1, 50)) if made else None
        attempts.append(
            ArchivedAttempt(
                slot=f"s{number}", round=1, generation=number // 4 + 1, index=number % 4, parent=parent.sha256,
                tried=tried, candidate=f"k{number}", verdict="correct", made=made, headroom=headroom,
            )
        )  # fmt: skip
    return attempts


@given(histories(), st.integers(1, 4), st.integers(1, 9))
def test_every_reply_is_handed_out_once_and_stays_on_its_island(
    attempts: list[ArchivedAttempt], islands: int, replies: int
) -> None:
    start = Incumbent(sha256="start", evaluation="e")
    handed = Archive(start, 30.0, attempts, islands).hand_out(1, replies)
    assert [one.index for one in handed] == list(range(replies))
    makers = {one.made.sha256: one.index % islands for one in attempts if one.made}
    for one in handed:
        assert one.donor is not None or makers.get(one.parent.sha256, one.index % islands) == one.index % islands
    assert sum(one.donor is not None for one in handed) <= 1
    assert handed == Archive(start, 30.0, attempts, islands).hand_out(1, replies)


def test_a_kernel_on_which_nothing_gains_loses_its_turn() -> None:
    start = Incumbent(sha256="start", evaluation="e")

    def attempt(number: int, parent: str, made: str | None, speedup: float, gain: float) -> ArchivedAttempt:
        incumbent = Incumbent(sha256=made, evaluation="e", gain=gain) if made else None
        tried = Tried(technique="t", outcome="x", speedup=speedup, accepted=made is not None)
        return ArchivedAttempt(
            slot=str(number), round=1, generation=1, index=0, parent=parent, tried=tried, made=incumbent, headroom=4.0
        )

    fresh = [attempt(0, "start", "a", 3.0, 3.0), attempt(1, "start", "b", 2.5, 2.5)]
    tired = [*fresh, attempt(2, "a", None, 0.9, 3.0), attempt(3, "a", None, 0.9, 3.0)]
    assert Archive(start, 9.0, fresh, 1).hand_out(1, 1)[0].parent.sha256 == "a"
    assert Archive(start, 9.0, tired, 1).hand_out(1, 1)[0].parent.sha256 == "b"
    assert math.isclose(fresh[0].log_gain, math.log(3.0))


def test_a_winner_is_remembered_for_other_problems(tmp_path: Path) -> None:
    searched(tmp_path)
    context = make_context(tmp_path, ScriptedModel(tmp_path / "again.log", climbing))
    (core,) = context.experience.base().document.cores
    assert (core.problem, core.op_family, core.median_us) == ("level1/023", "softmax", START_US / 4)
    assert "__global__ void k_3_3()" in core.source
    assert "//" not in core.source
