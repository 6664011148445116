"""Lessons drawn from measured pairs while a search runs: asked once, shown later, and never in its way."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from agent_support import EventList, ScriptedModel, answer, kernel, make_context, make_knowledge

from kernelblaster.agent.graph import run_problem
from kernelblaster.agent.nodes.distill import DIFF_CHARACTERS
from kernelblaster.agent.outcome import OutcomeStatus
from kernelblaster.errors import BudgetExceeded
from kernelblaster.models.base import ModelError, NoRecordedReply, Purpose, ReplyPending, RequestRejected

TEXT = "When loads are narrow, load four values at once, for each sector is then used whole."
SAID = json.dumps({"lesson": TEXT})


def script(rollout: int, step: int, attempt: int) -> str:
    """The second rollout's first kernel is slower than the start."""
    return answer(kernel(1.0 + step if rollout == 0 else 0.5 * step, tag=f"{rollout}{step}"))


def searched(root: Path, said: str | Exception = SAID, **changes):
    """A search with lessons: its outcome, what was asked about pairs, and its events."""
    root.mkdir(exist_ok=True)
    model = ScriptedModel(root / "model.log", script, others={Purpose.LESSON: said})
    events = EventList()
    settings = {
        "archive": True,
        "rollouts": 2,
        "ablate": (),
        "knowledge": make_knowledge(root, techniques=1),
        **changes,
    }
    context = make_context(root, model, events=events, **settings)
    outcome = asyncio.run(run_problem(context))
    return outcome, model, events


def asked(model: ScriptedModel, purpose: Purpose) -> list[str]:
    return [request.messages[-1].content for request in model.requests if request.purpose is purpose]


def test_each_generation_asks_about_its_strongest_gain_and_loss(tmp_path):
    _, model, events = searched(tmp_path, steps=1)
    gain, loss = asked(model, Purpose.LESSON)
    assert "2.00x as fast" in gain
    assert "faster?" not in gain
    assert "0.50x as fast" in loss
    assert "made the kernel slower" in loss
    assert "+__global__ void k01() {}" in gain
    assert "// speed" not in gain
    (told,) = events.of("lessons_drawn")
    assert [one.effect for one in told.drawn] == ["added", "contradicted"]
    assert told.prompt_tokens == 20
    assert told.dollars == pytest.approx(0.002)


def test_a_later_prompt_shows_the_lesson_beside_its_technique(tmp_path):
    _, model, events = searched(tmp_path, rollouts=1, steps=2)
    first, second = asked(model, Purpose.GENERATE)
    assert TEXT not in first
    assert f"lesson: {TEXT} (2.00x [2.00, 2.00], softmax fp16 sm_90)" in second
    (drawn,) = events.of("lessons_drawn")[0].drawn
    assert [event.lessons for event in events.of("selected")] == [[], [drawn.lesson]]


def test_the_next_question_shows_what_is_known(tmp_path):
    _, model, events = searched(tmp_path, rollouts=1, steps=2)
    first, second = asked(model, Purpose.LESSON)
    (drawn,) = events.of("lessons_drawn")[0].drawn
    assert "Lessons known" not in first
    assert f"{drawn.lesson}: {TEXT}" in second


def test_chains_draw_lessons_after_each_round(tmp_path):
    _, model, events = searched(tmp_path, archive=False, rollouts=1, steps=2, rounds=2)
    assert [event.slot for event in events.of("lessons_drawn")] == ["level1/023/r1/lessons", "level1/023/r2/lessons"]
    assert [TEXT in prompt for prompt in asked(model, Purpose.GENERATE)] == [False, False, True]


@pytest.mark.parametrize(
    "failure",
    [
        "no JSON at all",
        '{"lesson": 7}',
        NoRecordedReply("nothing recorded", hint="record"),
        RequestRejected("no such model", hint="name another"),
        ModelError("something else", hint="try again"),
        BudgetExceeded("spent", hint="raise it"),
        ReplyPending("q", "requests.jsonl"),
    ],
)
def test_whatever_happens_to_a_lesson_the_search_goes_on(tmp_path, failure):
    outcome, model, events = searched(tmp_path, failure, steps=2)
    assert outcome.final_sha256 is not None
    assert len(asked(model, Purpose.GENERATE)) == 3
    told = events.of("lessons_drawn")
    assert not any(event.drawn for event in told)
    assert all(event.skipped for event in told)
    assert bool(told) is not isinstance(failure, ReplyPending)


def test_a_reply_that_comes_later_is_read_by_the_next_start(tmp_path):
    def waiting(rollout: int, step: int, attempt: int):
        return ReplyPending("q", "f") if step == 2 else script(rollout, step, attempt)

    model = ScriptedModel(tmp_path / "m", waiting, others={Purpose.LESSON: ReplyPending("q", "f")})
    knowledge = make_knowledge(tmp_path, techniques=1)
    changes = {"archive": True, "rollouts": 1, "steps": 2, "ablate": (), "knowledge": knowledge}
    asyncio.run(run_problem(make_context(tmp_path, model, **changes)))
    question = asked(model, Purpose.LESSON)
    _, model, events = searched(tmp_path, rollouts=1, steps=2, knowledge=knowledge)
    assert asked(model, Purpose.LESSON)[0] == question[0]
    assert events.of("lessons_drawn")[0].drawn[0].text == TEXT


def test_a_search_that_waits_tells_of_every_question(tmp_path):
    others = {Purpose.LESSON: ReplyPending("q-1", "f"), Purpose.REFLECT: ReplyPending("q-2", "f")}
    model = ScriptedModel(tmp_path / "model.log", script, others=others)
    settings = {"archive": True, "rollouts": 1, "steps": 1, "ablate": ()}
    context = make_context(tmp_path, model, knowledge=make_knowledge(tmp_path, techniques=1), **settings)
    outcome = asyncio.run(run_problem(context))
    assert outcome.status is OutcomeStatus.WAITING
    assert {waiting.request_id for waiting in outcome.pending} == {"q-1", "q-2"}


def test_a_search_that_goes_on_asks_about_no_pair_twice(tmp_path):
    _, model, events = searched(tmp_path, steps=2, rounds=1)
    (tmp_path / "out" / "outcome.json").unlink(missing_ok=True)
    _, again, told = searched(tmp_path, steps=2, rounds=1)
    assert asked(model, Purpose.LESSON)
    assert not asked(again, Purpose.LESSON)
    assert [one.drawn for one in told.of("lessons_drawn")] == [one.drawn for one in events.of("lessons_drawn")]


def test_the_question_stays_short(tmp_path):
    def long(rollout: int, step: int, attempt: int) -> str:
        return answer(kernel(2.0) + "\n".join(f"int line_{number};" for number in range(2000)) + "\n")

    model = ScriptedModel(tmp_path / "m", long, others={Purpose.LESSON: SAID})
    asyncio.run(run_problem(make_context(tmp_path, model, steps=1, ablate=())))
    (question,) = asked(model, Purpose.LESSON)
    assert len(question) < DIFF_CHARACTERS + 2000
