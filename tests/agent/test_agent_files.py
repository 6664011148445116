"""Files and events of a search survive round trips; what is damaged counts as missing."""

from __future__ import annotations

import asyncio

import pytest
from agent_support import ScriptedModel, answer, kernel, make_context
from pydantic import ValidationError

from kernelblaster.agent.events import parse_event
from kernelblaster.agent.files import EvaluationKey, ProblemFiles
from kernelblaster.agent.graph import run_problem
from kernelblaster.agent.outcome import Incumbent, RolloutResult, StopReason
from kernelblaster.agent.state import BegunStep, StepDiagnosis
from kernelblaster.models.base import Message, Purpose, Reply, Request, Usage
from kernelblaster.storage.atomic import write_atomically


def slow_progress(rollout: int, step: int, attempt: int):
    speed = 1 + 0.02 * (step // 4 + 1) if step % 4 == 0 else 0.5
    return answer(kernel(speed, tag=f"_{rollout}_{step}"))


def test_every_event_of_a_search_survives_its_line(tmp_path):
    context = make_context(tmp_path, ScriptedModel(tmp_path / "m", slow_progress), steps=4)
    asyncio.run(run_problem(context))
    events = context.events.events
    assert [parse_event(event.model_dump_json()) for event in events] == events
    assert [event.kind for event in events[:6]] == [
        "start_profiled", "round_started", "step_started", "classified", "selected", "generated",
    ]  # fmt: skip
    assert events[-1].kind == "finalized"
    with pytest.raises(ValidationError):
        parse_event('{"kind": "unheard_of"}')


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "deep" / "file.json"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "\ud800")
    assert path.read_text() == "old"
    assert [entry.name for entry in path.parent.iterdir()] == ["file.json"]


def test_a_torn_evaluation_file_is_made_again(tmp_path):
    files = ProblemFiles(tmp_path)
    files.evaluation_path("k").parent.mkdir()
    files.evaluation_path("k").write_text('{"problem": "le')
    assert files.find_evaluation("k") is None
    assert files.find_evaluation("absent") is None


def test_every_part_of_an_evaluation_key_matters():
    base = {
        "source": "a", "baseline": "b", "device": "emulated/H200/sm_90", "precision": "fp16", "workload": "small",
        "purpose": "search",
    }  # fmt: skip
    names = {EvaluationKey(**{**base, field: "other"}).name for field in base}
    assert len(names | {EvaluationKey(**base).name, EvaluationKey(**{**base, "baseline": None}).name}) == 8


def request(words: str = "write it", **tags: str) -> Request:
    return Request(
        slot="level1/023/r1/rollout-0/step-1/attempt-0", purpose=Purpose.GENERATE,
        messages=(Message(role="user", content=words),), tags={"technique": "widen", **tags},
    )  # fmt: skip


def test_a_reply_belongs_to_its_question_however_that_is_worded(tmp_path):
    files = ProblemFiles(tmp_path)
    files.put_reply(
        request(), Reply(text="done", model="m", usage=Usage(prompt_tokens=1, completion_tokens=1, dollars=0.0))
    )
    assert files.find_reply(request("please write it")).text == "done"
    assert files.find_reply(request(technique="fuse")) is None


def test_damaged_and_foreign_files_count_as_missing(tmp_path):
    files = ProblemFiles(tmp_path)
    diagnosis = StepDiagnosis(parent="p", state="busy", confidence=1.0, decided_by="rules")
    begun = BegunStep(parent="p", started=1.0, diagnosis=diagnosis)
    result = RolloutResult(
        round=1, index=0, incumbent=Incumbent(sha256="p", evaluation="e"), stop=StopReason.STEPS, steps=1,
        transitions=1, verdicts={},
    )  # fmt: skip
    files.put_step("s", begun)
    files.put_rollout("s", result)
    files.put_draws(1, "p", {"s": "widen"})
    assert (files.find_step("s", "p"), files.find_step("s", "other")) == (begun, None)
    assert (files.find_rollout("s"), files.draws(1, "p")) == (result, {"s": "widen"})
    for path in tmp_path.rglob("*.json"):
        path.write_text("")
    assert (files.find_step("s", "p"), files.find_rollout("s"), files.draws(1, "p")) == (None, None, {})
    sha256 = files.put_candidate("source")
    files.candidate_path(sha256).write_text("")
    files.put_candidate("source")
    assert files.candidate(sha256) == "source"


def test_a_source_that_was_read_stays_in_memory_until_its_file_is_mended(tmp_path):
    files = ProblemFiles(tmp_path)
    sha256 = files.put_candidate("source")
    files.candidate_path(sha256).write_text("torn")
    assert files.candidate(sha256) == "torn"
    files.candidate_path(sha256).unlink()
    assert files.candidate(sha256) == "torn"
    files.put_candidate("source")
    assert files.candidate(sha256) == "source"
