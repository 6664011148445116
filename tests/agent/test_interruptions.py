"""Budgets, pending replies, refusing models, kills: what is done stays done, and the next start goes on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from agent_support import CommentEvaluator, EventList, ScriptedModel, answer, kernel, make_context, make_knowledge
from pydantic import TypeAdapter

from kernelblaster.agent.graph import run_problem
from kernelblaster.agent.outcome import OutcomeStatus, StopReason
from kernelblaster.agent.rendering import render
from kernelblaster.errors import BudgetExceeded, DeviceError
from kernelblaster.evaluation.results import Verdict
from kernelblaster.knowledge.changes import KnowledgeChange, Provenance
from kernelblaster.knowledge.experience import Experience
from kernelblaster.models.base import BadKey, CutShort, NoRecordedReply, PartialReply, Purpose, ReplyPending
from kernelblaster.storage.atomic import write_atomically


def improving(rollout: int, step: int, attempt: int) -> str:
    return answer(kernel(1 + 0.5 * step + 0.1 * rollout))


def budget() -> BudgetExceeded:
    return BudgetExceeded("1 dollar is spent", hint="raise it")


def run(context):
    return asyncio.run(run_problem(context))


def test_a_budget_ends_the_search_with_what_was_found(tmp_path):
    def script(rollout, step, attempt):
        return budget() if step == 2 else improving(rollout, step, attempt)

    others = {Purpose.VERIFY: budget(), Purpose.REFLECT: budget()}
    outcome = run(make_context(tmp_path, ScriptedModel(tmp_path / "m", script, others=others), rollouts=2))

    assert outcome.status is OutcomeStatus.BUDGET
    assert abs(outcome.speedup - 1.6) < 1e-9
    assert outcome.final_kernel.exists()
    assert [result.stop for result in outcome.rollouts] == [StopReason.BUDGET] * 2


def test_replies_that_were_cut_short_are_told_with_what_had_come(tmp_path):
    earlier = PartialReply(reason="the first stalled", characters=4, text="some")

    class Stalling(ScriptedModel):
        async def complete(self, request):
            reply = await super().complete(request)
            return reply.model_copy(update={"cut_short": (earlier,) if "step-1/attempt" in request.slot else ()})

    def script(rollout, step, attempt):
        return (
            improving(rollout, step, attempt)
            if step == 1
            else CutShort("it stalled", hint="wait", partial="half of it")
        )

    events = EventList()
    with pytest.raises(CutShort):
        run(make_context(tmp_path, Stalling(tmp_path / "m", script), events=events))
    told = [
        (event.slot.split("/")[-2], event.number, event.reason, event.partial) for event in events.of("reply_cut_short")
    ]
    assert told == [("step-1", 0, "the first stalled", "some"), ("step-2", 0, "it stalled", "half of it")]


def test_a_larger_budget_continues_inside_the_step_that_was_cut_off(tmp_path):
    def poor(rollout, step, attempt):
        if (rollout, step) == (1, 2):
            return "no source here" if attempt == 0 else budget()
        return improving(rollout, step, attempt)

    first = make_context(tmp_path, ScriptedModel(tmp_path / "m1", poor), rollouts=2)
    assert run(first).status is OutcomeStatus.BUDGET
    rich = ScriptedModel(tmp_path / "m2", improving)
    second = make_context(tmp_path, rich, rollouts=2)
    outcome = run(second)

    assert outcome.status is OutcomeStatus.IMPROVED
    assert abs(outcome.speedup - 2.6) < 1e-9
    assert [result.stop for result in outcome.rollouts] == [StopReason.STEPS] * 2
    asked = [slot for slot in rich.calls if "rollout" in slot]
    assert asked == [f"level1/023/r1/rollout-1/step-{place}" for place in ("2/attempt-1", "3/attempt-0")]
    assert outcome.transitions == 6
    assert second.experience.transitions.count() == 6


def test_time_over_ends_before_any_question_and_can_be_extended(tmp_path):
    model = ScriptedModel(tmp_path / "m", improving)
    late = make_context(tmp_path, model, deadline=time.monotonic() - 1)
    outcome = run(late)
    assert (outcome.status, outcome.transitions, model.calls) == (OutcomeStatus.BUDGET, 0, [])
    assert run(make_context(tmp_path, model)).status is OutcomeStatus.IMPROVED


def test_a_recording_without_an_answer_ends_that_rollout_only(tmp_path):
    def script(rollout, step, attempt):
        return NoRecordedReply("no answer") if (rollout, step) == (0, 2) else improving(rollout, step, attempt)

    others = {Purpose.REFLECT: NoRecordedReply("none"), Purpose.VERIFY: NoRecordedReply("none")}
    context = make_context(tmp_path, ScriptedModel(tmp_path / "m", script, others=others), rollouts=2)
    outcome = run(context)

    assert [result.stop for result in outcome.rollouts] == [StopReason.RECORDING_EXHAUSTED, StopReason.STEPS]
    assert outcome.status is OutcomeStatus.IMPROVED
    assert outcome.finalists[0].rejected is None


def test_a_recording_without_the_repair_ends_that_step_only(tmp_path):
    broken = answer(kernel(tag="broken", verdict=Verdict.COMPILE_ERROR))

    def script(rollout, step, attempt):
        if step == 1:
            return broken if attempt == 0 else NoRecordedReply("no repair")
        return improving(rollout, step, attempt)

    others = {Purpose.REFLECT: NoRecordedReply("none"), Purpose.VERIFY: NoRecordedReply("none")}
    context = make_context(tmp_path, ScriptedModel(tmp_path / "m", script, others=others), rollouts=1)
    outcome = run(context)

    assert outcome.rollouts[0].stop is StopReason.STEPS
    assert outcome.status is OutcomeStatus.IMPROVED
    assert outcome.verdicts[Verdict.COMPILE_ERROR] == 1
    assert next(t.verdict for t in context.experience.transitions.query()) is Verdict.COMPILE_ERROR


@pytest.mark.parametrize("error", [BadKey("401", hint="set OPENAI_API_KEY"), RuntimeError("bug")])
def test_a_refusing_model_stops_at_once_and_the_next_start_continues(tmp_path, error):
    def script(rollout, step, attempt):
        return error if step == 2 else improving(rollout, step, attempt)

    evaluator = CommentEvaluator(tmp_path / "evaluations.log")
    with pytest.raises(type(error)):
        run(make_context(tmp_path, ScriptedModel(tmp_path / "m1", script), evaluator))
    model = ScriptedModel(tmp_path / "m2", improving)
    outcome = run(make_context(tmp_path, model, evaluator))

    assert outcome.speedup == 2.5
    assert "level1/023/r1/rollout-0/step-1/attempt-0" not in model.calls
    assert max(Counter(evaluator.calls).values()) == 1


def test_a_failing_device_stops_and_the_reply_is_not_paid_again(tmp_path):
    class Broken(CommentEvaluator):
        def evaluate(self, problem, source, *, baseline, profile, process_pairs):
            if baseline is not None:
                raise DeviceError("the GPU is lost")
            return super().evaluate(problem, source, baseline=baseline, profile=profile, process_pairs=process_pairs)

    first = ScriptedModel(tmp_path / "m1", improving)
    with pytest.raises(DeviceError):
        run(make_context(tmp_path, first, Broken(tmp_path / "e")))
    second = ScriptedModel(tmp_path / "m2", improving)
    assert run(make_context(tmp_path, second)).speedup == 2.5
    assert set(first.calls).isdisjoint(second.calls)


@pytest.mark.parametrize("moment", ["generated", "evaluated", "decided", "reflected", "finalist_measured", "finalized"])
def test_a_crash_inside_any_node_repeats_neither_replies_nor_evaluations(tmp_path, moment):
    class Crashing(EventList):
        def emit(self, event):
            if event.kind == moment:
                raise RuntimeError("crash")

    evaluator = CommentEvaluator(tmp_path / "evaluations.log")
    model = ScriptedModel(tmp_path / "m", improving)
    with pytest.raises(RuntimeError, match="crash"):
        run(make_context(tmp_path, model, evaluator, events=Crashing()))
    outcome = run(make_context(tmp_path, model, evaluator))

    assert outcome.speedup == 2.5
    assert max(Counter(model.calls).values()) == 1
    assert max(Counter(evaluator.calls).values()) == 1


def test_a_write_that_fails_costs_nothing_that_was_done_wherever_it_is(tmp_path, monkeypatch):
    left = 0

    def failing(*arguments, **options):
        nonlocal left
        left -= 1
        if left == 0:
            raise RuntimeError("killed")
        write_atomically(*arguments, **options)

    for module in ("files", "nodes.finalize"):
        monkeypatch.setattr(f"kernelblaster.agent.{module}.write_atomically", failing)
    for number in range(1, 100):
        root = tmp_path / str(number)
        root.mkdir()
        evaluator = CommentEvaluator(root / "evaluations.log")
        model = ScriptedModel(root / "m", improving)
        left = number
        try:
            run(make_context(root, model, evaluator, rollouts=2, steps=1))
        except RuntimeError:
            pass
        else:
            assert number > 10
            return
        assert run(make_context(root, model, evaluator, rollouts=2, steps=1)).status is OutcomeStatus.IMPROVED
        # What each rollout was about to keep is asked for again, and nothing else.
        assert sum((Counter(model.calls) - Counter(set(model.calls))).values()) <= 2
        assert sum((Counter(evaluator.calls) - Counter(set(evaluator.calls))).values()) <= 2


def test_a_search_that_goes_on_chooses_as_it_had_chosen_though_more_is_known(tmp_path):
    """Also in steps that ended long ago: their replies are found by what they asked for."""

    def script(rollout, step, attempt):
        return ReplyPending("q", "f") if step == 3 else improving(rollout, step, attempt)

    knowledge = make_knowledge(tmp_path)
    first = make_context(tmp_path, ScriptedModel(tmp_path / "m1", script), knowledge=knowledge, events=EventList())
    assert run(first).status is OutcomeStatus.WAITING
    for technique in Experience(knowledge).base().techniques:
        proto = first.experience.transitions.query()[0]
        for number in range(5):
            made = proto.model_copy(update={"technique": technique, "slot": f"{technique}/{number}", "run": "other"})
            first.experience.record(made)
    model = ScriptedModel(tmp_path / "m2", improving)
    second = make_context(tmp_path, model, knowledge=knowledge, events=EventList())
    assert run(second).status is OutcomeStatus.IMPROVED
    assert [slot for slot in model.calls if "rollout" in slot] == ["level1/023/r1/rollout-0/step-3/attempt-0"]
    chosen = [event.model_dump(exclude={"at"}) for event in first.events.of("selected")]
    assert [event.model_dump(exclude={"at"}) for event in second.events.of("selected")] == chosen


def test_rollouts_that_have_ended_are_not_gone_through_again(tmp_path):
    def script(rollout, step, attempt):
        return ReplyPending("q", "f") if rollout == 1 else improving(rollout, step, attempt)

    run(make_context(tmp_path, ScriptedModel(tmp_path / "m1", script), rollouts=2))
    for path in (tmp_path / "out" / "replies").rglob("*.json"):
        path.unlink()
    context = make_context(tmp_path, ScriptedModel(tmp_path / "m2", improving), rollouts=2)
    outcome = run(context)
    assert [result.transitions for result in outcome.rollouts] == [3, 3]
    assert not [slot for slot in context.model.calls if "rollout-0" in slot]
    assert [event.slot[-1] for event in context.events.of("rollout_stopped")] == ["0", "1"]


PROPOSAL = """{"changes": [{"kind": "add_technique", "reason": "seen", "id": "two_rows_per_warp", "category": "memory",
"summary": "Let every warp work on two short rows.", "how_to": ["Halve it."], "states": ["hybrid_bound"]}]}"""


def test_a_reflection_that_was_applied_is_not_asked_for_in_other_words(tmp_path):
    """Its prompt shows the knowledge base, which its own answer has changed when the kill comes."""

    class Dying(Experience):
        def apply(self, changes, provenance):
            super().apply(changes, provenance)
            raise RuntimeError("killed")

    knowledge = make_knowledge(tmp_path)
    others = {Purpose.REFLECT: PROPOSAL}
    with pytest.raises(RuntimeError, match="killed"):
        run(
            make_context(
                tmp_path, ScriptedModel(tmp_path / "m1", improving, others=others), experience=Dying(knowledge)
            )
        )
    assert "two_rows_per_warp" in Experience(knowledge).base().techniques
    model = ScriptedModel(tmp_path / "m2", improving, others=others)
    assert run(make_context(tmp_path, model, knowledge=knowledge)).status is OutcomeStatus.IMPROVED
    assert not [slot for slot in model.calls if slot.endswith("reflect")]


def test_a_pending_question_keeps_its_words_while_others_teach_the_knowledge_base(tmp_path):
    pending = {Purpose.CLASSIFY: ReplyPending("q", "f")}
    knowledge = make_knowledge(tmp_path, decided=False)
    first = ScriptedModel(tmp_path / "m1", improving, others=pending)
    assert run(make_context(tmp_path, first, knowledge=knowledge)).status is OutcomeStatus.WAITING
    change = TypeAdapter(KnowledgeChange).validate_python(json.loads(PROPOSAL)["changes"][0])
    Experience(knowledge).apply([change], Provenance(run="other", model="other"))
    knowledge.update(_with_another_state)
    second = ScriptedModel(tmp_path / "m2", improving, others={Purpose.CLASSIFY: '{"state": "hybrid_bound"}'})
    run(make_context(tmp_path, second, knowledge=knowledge))
    assert first.requests[0] == second.requests[0]


def _with_another_state(document):
    entry = document.states["hybrid_bound"]
    return document.model_copy(update={"states": {**document.states, "latency_bound": entry}})


def test_pending_replies_stop_only_the_rollouts_that_need_them(tmp_path):
    def script(rollout, step, attempt):
        return ReplyPending("q1", "requests.jsonl") if (rollout, step) == (1, 2) else improving(rollout, step, attempt)

    context = make_context(tmp_path, ScriptedModel(tmp_path / "m1", script), rollouts=3)
    waiting = run(context)

    assert waiting.status is OutcomeStatus.WAITING
    assert [(p.slot, p.request_id) for p in waiting.pending] == [("level1/023/r1/rollout-1/step-2/attempt-0", "q1")]
    assert [result.index for result in waiting.rollouts] == [0, 2]
    assert len(context.events.of("waiting")) == 1
    assert run(make_context(tmp_path, ScriptedModel(tmp_path / "m2", script), rollouts=3)).status == "waiting"

    answered = ScriptedModel(tmp_path / "m3", improving)
    outcome = run(make_context(tmp_path, answered, rollouts=3))
    assert outcome.status is OutcomeStatus.IMPROVED
    assert [slot for slot in answered.calls if "rollout" in slot] == [
        f"level1/023/r1/rollout-1/step-{step}/attempt-0" for step in (2, 3)
    ]
    assert outcome.transitions == 9


def test_the_request_that_is_asked_again_is_the_same_to_the_character(tmp_path):
    """A batch exchange finds replies by request; other rollouts may have changed the statistics meanwhile."""

    def script(rollout, step, attempt):
        return ReplyPending("q", "f") if rollout == 0 and step == 2 else improving(rollout, step, attempt)

    first = ScriptedModel(tmp_path / "m1", script)
    run(make_context(tmp_path, first, rollouts=3))
    second = ScriptedModel(tmp_path / "m2", improving)
    run(make_context(tmp_path, second, rollouts=3))

    slot = "level1/023/r1/rollout-0/step-2/attempt-0"
    (before,) = [request for request in first.requests if request.slot == slot]
    (after,) = [request for request in second.requests if request.slot == slot]
    assert before == after


def test_a_pending_question_keeps_its_words_though_prompts_have_changed(tmp_path, monkeypatch):
    """A reply that somebody is working on answers the words it was asked in."""

    def script(rollout, step, attempt):
        return ReplyPending("q", "f") if step == 2 else improving(rollout, step, attempt)

    first = ScriptedModel(tmp_path / "m1", script)
    run(make_context(tmp_path, first))
    monkeypatch.setattr(
        "kernelblaster.agent.prompting.render", lambda template, **values: f"newer: {render(template, **values)}"
    )
    second = ScriptedModel(tmp_path / "m2", improving)
    assert run(make_context(tmp_path, second)).status is OutcomeStatus.IMPROVED
    assert second.requests[0] == first.requests[-1]
    assert second.requests[1].messages[0].content.startswith("newer")


def test_everything_may_be_pending_one_reply_at_a_time(tmp_path):
    """A batch exchange answers nothing on the spot: each start gets one generation of replies further."""
    answered: set[str] = set()

    class Exchange(ScriptedModel):
        async def complete(self, request):
            if request.slot not in answered:
                answered.add(request.slot)
                raise ReplyPending(request.slot, "requests.jsonl")
            return await super().complete(request)

    starts = 0
    while True:
        starts += 1
        model = Exchange(tmp_path / "m", improving)
        outcome = run(make_context(tmp_path, model, rollouts=2, steps=2, events=EventList()))
        if outcome.status is not OutcomeStatus.WAITING:
            break
        assert starts < 10
    assert outcome.status is OutcomeStatus.IMPROVED
    assert starts == 5  # two steps, reflection, verification, and the start that finds it done
    assert max(Counter(model.calls).values()) == 1


CHILD = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {support!r})
from agent_support import CommentEvaluator, ScriptedModel, answer, kernel, make_context
from kernelblaster.agent.graph import run_problem

root = Path({root!r})


def script(rollout, step, attempt):
    verdict = "compile_error" if attempt == 0 and step % 3 == 0 else "correct"
    return answer(kernel(1 + 0.1 * step + 0.001 * rollout, tag=f"{{rollout}}_{{step}}_{{attempt}}", verdict=verdict))


model = ScriptedModel(root / "model.log", script)
context = make_context(root, model, CommentEvaluator(root / "evaluations.log", delay_s=0.004), rollouts=3, steps=8)
print(asyncio.run(run_problem(context)).status, flush=True)
"""


def test_killed_anywhere_it_continues_without_repeating_evaluations_or_replies(tmp_path):
    code = CHILD.format(support=str(Path(__file__).parent), root=str(tmp_path))
    make_knowledge(tmp_path)
    journals = (tmp_path / "evaluations.log", tmp_path / "model.log")
    kills = sum(_killed_after(lines, code, journals) for lines in (9, 20, 33, 50))
    final = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)

    assert final.stdout.strip() == "improved"
    assert kills >= 3
    evaluations, asked = (Counter(path.read_text().splitlines()) for path in journals)
    # A journal line is written just before the result is kept: a kill in between may cost each rollout that one again.
    assert sum(evaluations.values()) - len(evaluations) <= 3 * kills
    assert sum(asked.values()) - len(asked) <= 3 * kills
    context = make_context(tmp_path, ScriptedModel(tmp_path / "unused", improving), rollouts=3, steps=8)
    assert context.experience.transitions.count() == 24
    attempts = sum(row.sums.attempts for row in context.experience.document().statistics)
    assert attempts == 24, "every edge is counted exactly once"


def _killed_after(lines: int, code: str, journals: tuple[Path, ...]) -> bool:
    """Start the child and SIGKILL it when its journals hold that many lines; False when it ended before."""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
    limit = time.monotonic() + 60
    while child.poll() is None and time.monotonic() < limit:
        if sum(len(path.read_bytes().splitlines()) for path in journals if path.exists()) >= lines:
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
            return True
        time.sleep(0.001)
    child.kill()
    child.wait()
    return False
