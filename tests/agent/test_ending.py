"""How a search ends: reflection, the final measurement, sanitizers, the veto."""

from __future__ import annotations

import asyncio
import json
from typing import ClassVar

import pytest
from agent_support import CommentEvaluator, ScriptedModel, answer, kernel, make_context

from kernelblaster.agent.graph import run_problem
from kernelblaster.agent.nodes.reflect import performance_gap, read_proposal, transition_line
from kernelblaster.agent.outcome import OutcomeStatus
from kernelblaster.devices.profiles import SanitizerFinding
from kernelblaster.errors import BudgetExceeded
from kernelblaster.evaluation.results import Decision, ProcessPairRatio, Verdict
from kernelblaster.knowledge.changes import AddLesson
from kernelblaster.models.base import NoRecordedReply, Purpose
from kernelblaster.models.replies import UnusableReply

LESSON = {
    "kind": "add_lesson",
    "text": "When DRAM is saturated, wider loads help only while sectors are used partly.",
    "reason": "two transitions",
}


def search(tmp_path, *, evaluator=None, others=None, rollouts=3, **changes):
    model = ScriptedModel(
        tmp_path / "model.log",
        lambda rollout, step, attempt: answer(kernel(2.0 + rollout, tag=f"_{rollout}"), expected=1.1),
        others=others,
    )
    context = make_context(tmp_path, model, evaluator, rollouts=rollouts, steps=1, **changes)
    return asyncio.run(run_problem(context)), context


def test_finalists_are_measured_against_the_start_again(tmp_path):
    evaluator = CommentEvaluator(tmp_path / "evaluations.log")
    outcome, _ = search(tmp_path, evaluator=evaluator, rollouts=5)

    (final,) = outcome.finalists
    assert (round(final.gain), final.rejected) == (6, None)
    assert len([call for call in evaluator.calls if call.endswith("False")]) == 1  # the others are clearly behind
    assert outcome.comparison.baseline.samples_us == []


def test_finalists_that_are_close_are_all_measured(tmp_path):
    model = ScriptedModel(
        tmp_path / "model.log", lambda rollout, *_: answer(kernel(3.0 + 0.1 * rollout, tag=f"_{rollout}"))
    )
    context = make_context(tmp_path, model, rollouts=5, steps=1)
    outcome = asyncio.run(run_problem(context))
    assert [round(f.gain, 1) for f in outcome.finalists] == [3.4, 3.3, 3.2]
    assert [bool(f.rejected) for f in outcome.finalists] == [False, True, True]


def test_finalists_are_measured_in_several_pairs_of_processes_and_the_final_kernel_says_so(tmp_path):
    class Repeats(CommentEvaluator):
        def evaluate(self, problem, source, *, baseline, profile, process_pairs):
            found = super().evaluate(problem, source, baseline=baseline, profile=profile, process_pairs=process_pairs)
            if process_pairs == 1:
                return found
            speedup = found.comparison.speedup
            ratios = [ProcessPairRatio(speedup=speedup * f, low=1.1, high=9.0) for f in (0.99, 1.0, 1.0, 1.01, 1.02)]
            comparison = found.comparison.model_copy(update={"sessions": ratios})
            if "speed: 4.0" in source:
                comparison = comparison.model_copy(update={"decision": Decision.INCONCLUSIVE})
            return found.model_copy(update={"comparison": comparison})

    evaluator = Repeats(tmp_path / "evaluations.log")
    outcome, context = search(tmp_path, evaluator=evaluator)
    assert evaluator.process_pairs.count(5) == 2  # the third is clearly behind the second
    assert outcome.speedup == 3.0
    assert len(outcome.comparison.sessions) == 5
    assert "3.960, 4.000" in outcome.finalists[0].rejected
    header = (context.directory / "final_rl_cuda_perf.cu").read_text().split("__global__")[0]
    assert "2.970, 3.000, 3.000, 3.030, 3.060; spread 3.0%" in header


def test_a_finalist_that_fails_the_second_time_is_not_written(tmp_path):
    class Flaky(CommentEvaluator):
        def evaluate(self, problem, source, *, baseline, profile, process_pairs):
            found = super().evaluate(problem, source, baseline=baseline, profile=profile, process_pairs=process_pairs)
            if not profile and "speed: 4.0" in source:
                return found.model_copy(update={"verdict": Verdict.NONDETERMINISTIC, "comparison": None})
            return found

    outcome, _ = search(tmp_path, evaluator=Flaky(tmp_path / "evaluations.log"))
    assert outcome.speedup == 3.0
    assert "nondeterministic" in next(f.rejected for f in outcome.finalists if f.gain == 4.0)


def test_a_sanitizer_finding_rejects(tmp_path):
    finding = SanitizerFinding(tool="memcheck", message="invalid read of size 4")
    outcome, context = search(tmp_path, evaluator=CommentEvaluator(tmp_path / "e", findings=[finding]))

    assert outcome.status is OutcomeStatus.NO_IMPROVEMENT
    assert "invalid read" in outcome.reason
    assert not (context.directory / "final_rl_cuda_perf.cu").exists()


class Sanitizing(CommentEvaluator):
    """Finds something in sources that say so."""

    def sanitize(self, problem, source):
        if "race" not in source:
            return []
        return [SanitizerFinding(tool="racecheck", message="write after write", location="candidate.cu:7")]


def race(speed: float) -> str:
    return answer(kernel(speed, tag="_race"))


def ending(tmp_path, repair: str | Exception, **changes):
    """Two rollouts: one with a race, 4 times as fast, and one that is clean and twice as fast."""
    model = ScriptedModel(
        tmp_path / "model.log",
        lambda rollout, *_: race(4.0) if rollout == 0 else answer(kernel(2.0, tag="_clean")),
        mends=repair,
    )
    context = make_context(tmp_path, model, Sanitizing(tmp_path / "e"), rollouts=2, steps=1, **changes)
    return asyncio.run(run_problem(context)), context


def test_what_a_sanitizer_finds_goes_back_to_the_model_once_and_the_repair_can_win(tmp_path):
    outcome, context = ending(tmp_path, answer(kernel(3.5, tag="_mended")))
    assert outcome.speedup == 3.5
    racing, mended = outcome.finalists  # the clean one is clearly behind
    assert "racecheck" in racing.rejected
    assert "candidate.cu:7" in racing.rejected
    assert (mended.mends, mended.rejected) == (racing.sha256, None)
    (request,) = [r for r in context.model.requests if "/mend/" in r.slot]
    assert request.purpose is Purpose.REPAIR
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "user"]
    assert "k_race" in request.messages[2].content
    assert "sanitizer_error" in request.messages[3].content
    assert "candidate.cu:7" in request.messages[3].content


@pytest.mark.parametrize(
    "repair",
    [
        race(3.9),
        race(4.0),
        answer(kernel(1.5, tag="_slow")),
        answer(kernel(3.0, verdict=Verdict.WRONG_VALUES)),
        "I cannot.",
        BudgetExceeded("over", hint="raise it"),
        NoRecordedReply("no such exchange", hint="none"),
    ],
)
def test_a_repair_that_does_not_help_leaves_the_next_finalist(tmp_path, repair):
    outcome, context = ending(tmp_path, repair)
    assert outcome.speedup == 2.0
    assert len([r for r in context.model.requests if "/mend/" in r.slot]) == 1
    assert "k_clean" in (context.directory / "final_rl_cuda_perf.cu").read_text()


def test_two_finalists_that_are_mended_into_one_kernel_are_listed_once(tmp_path):
    model = ScriptedModel(
        tmp_path / "model.log",
        lambda rollout, *_: answer(kernel(4.0 + rollout, tag=f"_race{rollout}")),
        mends=answer(kernel(3.5, tag="_mended")),
    )
    evaluator = Sanitizing(tmp_path / "e")
    outcome = asyncio.run(run_problem(make_context(tmp_path, model, evaluator, rollouts=2, steps=1)))
    assert outcome.speedup == 3.5
    assert [round(f.comparison.speedup, 1) for f in outcome.finalists] == [5.0, 4.0, 3.5]


def test_what_sanitizers_found_before_a_kill_is_not_looked_for_again(tmp_path):
    class Counting(Sanitizing):
        sanitized: ClassVar[list[str]] = []

        def sanitize(self, problem, source):
            self.sanitized.append(source)
            return super().sanitize(problem, source)

    class Killed(Exception):
        pass

    def run(mends):
        model = ScriptedModel(tmp_path / "model.log", lambda *_: race(4.0), mends=mends)
        context = make_context(tmp_path, model, Counting(tmp_path / "e"), rollouts=1, steps=1)
        return asyncio.run(run_problem(context))

    with pytest.raises(Killed):
        run(Killed("between the sanitizers and the repair"))
    assert len(Counting.sanitized) == 1
    outcome = run(answer(kernel(3.5, tag="_mended")))
    assert outcome.speedup == 3.5
    assert len(Counting.sanitized) == 2


def test_the_model_can_veto(tmp_path):
    outcome, _ = search(tmp_path, others={Purpose.VERIFY: '{"veto": true, "reason": "it caches the output"}'})
    assert outcome.status is OutcomeStatus.NO_IMPROVEMENT
    assert outcome.reason == "vetoed: it caches the output"
    assert all(f.faster for f in outcome.finalists)


@pytest.mark.parametrize(
    "reply", ["looks great!", "", '{"veto": "true"}', '{"approve": true}', "[]", '{"veto": false, "reason": "x"}']
)
def test_anything_but_a_clear_veto_is_none(tmp_path, reply):
    outcome, _ = search(tmp_path, rollouts=1, others={Purpose.VERIFY: reply})
    assert outcome.status is OutcomeStatus.IMPROVED
    assert outcome.reason.endswith("x over the start, modelled")


def test_the_model_cannot_approve_what_measurement_refused(tmp_path):
    model = ScriptedModel(
        tmp_path / "m", lambda *place: answer(kernel(0.5)), others={Purpose.VERIFY: '{"veto": false, "approved": true}'}
    )
    context = make_context(tmp_path, model, steps=1)
    assert asyncio.run(run_problem(context)).status is OutcomeStatus.NO_IMPROVEMENT
    assert not any("verify" in slot for slot in model.calls)


def test_soft_verification_and_reflection_can_be_switched_off(tmp_path):
    outcome, context = search(tmp_path, soft_verify=False, reflect=False)
    assert outcome.status is OutcomeStatus.IMPROVED
    assert all("rollout" in slot for slot in context.model.calls)


def test_reflection_applies_what_fits_the_schema_and_names_what_does_not(tmp_path):
    said = json.dumps({"changes": [LESSON, {"kind": "rewrite_everything"}, {"kind": "add_lesson", "text": "short"}]})
    _, context = search(tmp_path, others={Purpose.REFLECT: f"Here you are:\n```json\n{said}\n```"})

    (event,) = context.events.of("reflected")
    assert len(event.changes) == 1
    assert len(event.refused) == 2
    assert [lesson.text for lesson in context.experience.document().lessons] == [LESSON["text"]]


@pytest.mark.parametrize("reply", ["I learned a lot.", '{"changes": "many"}', '{"lessons": []}', "", "{" * 500])
def test_reflection_garbage_changes_nothing(tmp_path, reply):
    outcome, context = search(tmp_path, others={Purpose.REFLECT: reply}, rollouts=1)
    assert outcome.status is OutcomeStatus.IMPROVED
    assert context.experience.document().lessons == ()
    assert context.events.of("reflected")[0].skipped.startswith("unusable reply")


def test_too_many_changes_are_cut():
    proposal = read_proposal(json.dumps({"changes": [LESSON] * 7}))
    assert [type(change) for change in proposal.changes] == [AddLesson] * 5
    assert len(proposal.refused) == 2
    with pytest.raises(UnusableReply):
        read_proposal("nothing")


def test_reflection_sees_expected_against_measured(tmp_path):
    _, context = search(tmp_path)
    (request,) = [r for r in context.model.requests if r.purpose is Purpose.REFLECT]
    (told, *_) = [line for line in request.messages[0].content.splitlines() if "4.00x" in line]
    assert told.index("1.10x") < told.index("4.00x") < told.index("faster")
    transitions = context.experience.transitions.query()
    assert max(transitions, key=performance_gap).speedup == 4.0
    failed = transitions[0].model_copy(
        update={"verdict": Verdict.TIMEOUT, "speedup": None, "reason": "timeout: 60 s", "expected_speedup": None}
    )
    assert "timeout: 60 s" in transition_line(failed)
    assert "1.10x" not in transition_line(failed)
    told = failed.model_copy(update={"metric_deltas": {"l1_hit.pct": 0.04, "occupancy.pct": -12.3, "cycles": -9.0}})
    assert transition_line(told).endswith("60 s; occupancy.pct -12.3")
