"""The search loop: acceptance, repair, tabu, stopping."""

from __future__ import annotations

import asyncio

import pytest
from agent_support import START_US, CommentEvaluator, EventList, ScriptedModel, answer, edit, kernel, make_context

from kernelblaster.agent.graph import run_problem
from kernelblaster.agent.outcome import OutcomeStatus, StopReason
from kernelblaster.agent.shared_notes import IDLE_REPLIES
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.models.base import Purpose
from kernelblaster.replay.buffer import Query


def search(tmp_path, script, *, evaluator=None, others=None, answerable=None, **changes):
    model = ScriptedModel(tmp_path / "model.log", script, others=others, answerable=answerable)
    context = make_context(tmp_path, model, evaluator, **changes)
    return asyncio.run(run_problem(context)), context


def test_each_faster_candidate_becomes_the_parent_and_the_best_one_is_written(tmp_path):
    outcome, context = search(
        tmp_path, lambda rollout, step, attempt: answer(kernel(1 + 0.5 * step + 0.1 * rollout)), rollouts=2, steps=3
    )

    assert outcome.status is OutcomeStatus.IMPROVED
    assert abs(outcome.speedup - 2.6) < 1e-9
    assert [result.stop for result in outcome.rollouts] == [StopReason.STEPS] * 2
    assert outcome.transitions == 6
    assert outcome.verdicts == {"correct": 6}
    text = outcome.final_kernel.read_text()
    assert text.endswith(kernel(2.6))
    assert "2.600x" in text
    assert "emulated H200 (sm_90)" in text
    parents = [t.parent_sha256 for t in context.experience.transitions.query(Query(rollout=0))]
    assert len(set(parents)) == 3, "every accepted candidate is the next step's parent"


def test_the_reward_is_credited_to_the_edge_from_its_own_parent(tmp_path):
    _, context = search(tmp_path, lambda rollout, step, attempt: answer(kernel(2.0**step), 1.7), steps=3)

    transitions = context.experience.transitions.query()
    assert [round(t.speedup, 6) for t in transitions] == [2.0] * 3
    assert all(t.expected_speedup == 1.7 for t in transitions)
    assert context.experience.document().statistics[0].sums.attempts >= 1
    assert all(t.prompt_tokens == 10 and t.dollars == 0.001 for t in transitions)


def test_a_slower_or_inconclusive_candidate_keeps_the_parent(tmp_path):
    speeds = {1: 0.5, 2: 1.004, 3: 2.0}
    outcome, context = search(tmp_path, lambda rollout, step, attempt: answer(kernel(speeds[step])), steps=3)

    assert [event.accepted for event in context.events.of("decided")] == [False, False, True]
    assert [event.outcome for event in context.events.of("decided")] == ["slower", "inconclusive", "faster"]
    assert len({t.parent_sha256 for t in context.experience.transitions.query()}) == 1
    assert outcome.speedup == 2.0


def test_nothing_is_written_when_nothing_is_faster(tmp_path):
    outcome, context = search(tmp_path, lambda rollout, step, attempt: answer(kernel(0.5 + step / 100)), steps=3)

    assert outcome.status is OutcomeStatus.NO_IMPROVEMENT
    assert outcome.final_kernel is None
    assert outcome.comparison is None
    assert not (context.directory / "final_rl_cuda_perf.cu").exists()


def test_a_failure_goes_back_with_its_log_and_the_repaired_candidate_counts(tmp_path):
    def script(rollout, step, attempt):
        broken = kernel(tag=f"_{attempt}", verdict=Verdict.COMPILE_ERROR)
        return answer(broken if attempt < 2 else kernel(3.0))

    outcome, context = search(tmp_path, script, steps=1, repairs=3)

    repair = context.model.requests[1]
    assert repair.purpose is Purpose.REPAIR
    assert [message.role for message in repair.messages] == ["system", "user", "assistant", "user"]
    assert "line 7: error: boom" in repair.messages[-1].content
    assert "compile_error" in repair.messages[-1].content
    assert outcome.speedup == 3.0
    assert outcome.verdicts == {"compile_error": 2, "correct": 1}
    (transition,) = context.experience.transitions.query()
    assert (transition.attempts, transition.verdict) == (3, Verdict.CORRECT)
    assert transition.prompt_tokens == 30


def test_repairs_end_and_the_failure_is_recorded(tmp_path):
    outcome, context = search(
        tmp_path,
        lambda rollout, step, attempt: answer(kernel(tag=f"_{step}_{attempt}", verdict=Verdict.WRONG_VALUES)),
        steps=2,
        repairs=1,
    )

    assert outcome.verdicts == {"wrong_values": 4}
    assert [(t.attempts, t.verdict) for t in context.experience.transitions.query()] == [(2, Verdict.WRONG_VALUES)] * 2
    assert all(t.reward < 0 and t.speedup is None for t in context.experience.transitions.query())


def test_a_reward_hack_is_recorded_and_not_repaired(tmp_path):
    outcome, context = search(
        tmp_path, lambda rollout, step, attempt: answer(kernel(9.0, verdict=Verdict.REWARD_HACK)), steps=1, repairs=3
    )

    assert len(context.model.requests) == 2  # one candidate, one reflection
    assert outcome.status is OutcomeStatus.NO_IMPROVEMENT
    assert context.experience.transitions.query()[0].reward == -1.0


def test_a_reply_without_source_is_repaired(tmp_path):
    outcome, context = search(
        tmp_path,
        lambda rollout, step, attempt: "I would use shared memory." if attempt == 0 else answer(kernel(2.0)),
        steps=1,
    )

    assert context.model.requests[1].messages[-2].content == "I would use shared memory."
    assert outcome.speedup == 2.0


def test_replies_that_never_hold_a_source_are_a_failed_transition(tmp_path):
    outcome, context = search(tmp_path, lambda rollout, step, attempt: "no\x00thing", steps=1, repairs=1)

    (transition,) = context.experience.transitions.query()
    assert transition.candidate_sha256 is None
    assert transition.verdict is Verdict.COMPILE_ERROR
    assert transition.reason.startswith("unusable_reply")
    assert outcome.verdicts == {}


def test_identical_sources_are_not_evaluated_again(tmp_path):
    evaluator = CommentEvaluator(tmp_path / "evaluations.log")
    slower = kernel(0.5)
    replies = {1: slower, 2: slower, 3: kernel(1.0, tag="start")}
    outcome, context = search(
        tmp_path, lambda rollout, step, attempt: answer(replies[step]), evaluator=evaluator, steps=3, repairs=1
    )

    assert len(evaluator.calls) == 2  # the start and the slower kernel once
    transitions = context.experience.transitions.query()
    assert [t.reason.split(":")[0] for t in transitions] == ["", "duplicate", "duplicate"]
    assert all(t.speedup is None and t.reward == 0 for t in transitions[1:])
    assert "identical" in context.model.requests[2].messages[-1].content
    assert outcome.transitions == 3


def test_a_pair_evaluated_by_another_rollout_is_reused(tmp_path):
    evaluator = CommentEvaluator(tmp_path / "evaluations.log", delay_s=0.02)
    outcome, context = search(
        tmp_path, lambda rollout, step, attempt: answer(kernel(2.0)), evaluator=evaluator, rollouts=4, steps=1
    )

    assert len(evaluator.calls) == 3  # start, the candidate once for four rollouts, the final measurement
    assert sum(event.reused for event in context.events.of("evaluated")) == 3
    assert outcome.transitions == 4


def test_the_parent_is_profiled_once(tmp_path):
    evaluator = CommentEvaluator(tmp_path / "evaluations.log")
    search(tmp_path, lambda rollout, step, attempt: answer(kernel(1.0 + step)), evaluator=evaluator, steps=4)

    profiled = [call.split()[0] for call in evaluator.calls if call.endswith("True")]
    assert len(profiled) == len(set(profiled)) == 5


def test_techniques_do_not_repeat_until_one_is_accepted(tmp_path):
    def script(rollout, step, attempt):
        return answer(kernel(2.0 if step == 5 else 0.3 + step / 100))

    _, context = search(tmp_path, script, steps=9, patience=9)

    tried = [event.technique for event in context.events.of("selected")]
    assert len(set(tried[:5])) == 5
    assert len(set(tried[5:])) == 4


def test_rollouts_on_one_parent_draw_different_techniques(tmp_path):
    _, context = search(
        tmp_path, lambda rollout, step, attempt: answer(kernel(0.5, tag=f"{rollout}_{step}")), rollouts=4, steps=3
    )
    drawn = [event.technique for event in context.events.of("selected")]
    assert len(drawn) == len(set(drawn)) == 12  # all that there are, each once, since the parent never changes


def test_a_rollout_that_dies_draws_the_same_again(tmp_path):
    class Dying(EventList):
        def emit(self, event):
            super().emit(event)
            if event.kind == "selected":
                raise RuntimeError("killed")

    def script(rollout, step, attempt):
        return answer(kernel(2.0))

    dying = Dying()
    with pytest.raises(RuntimeError, match="killed"):
        search(tmp_path, script, steps=1, events=dying)
    _, context = search(tmp_path, script, steps=1, seed=1)
    (before,), (after,) = dying.of("selected"), context.events.of("selected")
    assert before.technique == after.technique


def test_a_rollout_ends_when_every_answerable_technique_was_tried(tmp_path):
    outcome, context = search(
        tmp_path,
        lambda rollout, step, attempt: answer(kernel(0.5 + step / 100)),
        answerable=frozenset({"technique_1", "technique_2"}),
        steps=9,
        patience=9,
    )

    assert outcome.rollouts[0].stop is StopReason.NOTHING_TO_TRY
    assert {event.technique for event in context.events.of("selected")} == {"technique_1", "technique_2"}


def test_patience_ends_a_rollout(tmp_path):
    outcome, _ = search(tmp_path, lambda rollout, step, attempt: answer(kernel(0.4 + step / 100)), steps=9, patience=4)
    assert (outcome.rollouts[0].stop, outcome.rollouts[0].transitions) == (StopReason.PATIENCE, 4)


def test_inconclusive_steps_in_a_row_are_convergence(tmp_path):
    outcome, _ = search(
        tmp_path, lambda rollout, step, attempt: answer(kernel(1.0 + step / 10000)), steps=9, patience=9
    )
    assert (outcome.rollouts[0].stop, outcome.rollouts[0].transitions) == (StopReason.CONVERGED, 3)


def test_a_kernel_near_the_attainable_time_ends_a_rollout(tmp_path):
    near = START_US / 5.0 * 0.97
    outcome, _ = search(tmp_path, lambda rollout, step, attempt: answer(kernel(near)), steps=9)
    assert (outcome.rollouts[0].stop, outcome.rollouts[0].transitions) == (StopReason.NEAR_ATTAINABLE, 1)


def test_the_next_round_starts_from_the_best_kernel(tmp_path):
    def script(rollout, step, attempt):
        return answer(kernel(2.0 + rollout if attempt == 0 else 0.1))

    outcome, context = search(tmp_path, script, rollouts=2, steps=1, rounds=2, repairs=0)

    started = context.events.of("round_started")
    assert [(event.round, event.gain) for event in started] == [(1, 1.0), (2, 3.0)]
    assert [(r.round, r.index) for r in outcome.rollouts] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert len(context.events.of("reflected")) == 2


def test_a_wrong_start_fails_the_problem_without_asking_the_model(tmp_path):
    model = ScriptedModel(tmp_path / "model.log", lambda *place: answer(kernel(2.0)))
    context = make_context(tmp_path, model)
    context.problem.init_path.write_text(kernel(verdict=Verdict.WRONG_VALUES))

    outcome = asyncio.run(run_problem(context))

    assert outcome.status is OutcomeStatus.FAILED
    assert "wrong_values" in outcome.reason
    assert model.calls == []


def test_later_prompts_tell_what_was_tried(tmp_path):
    _, context = search(tmp_path, lambda rollout, step, attempt: answer(kernel(0.5 + step / 100), 1.4), steps=2)

    first, second = (context.model.requests[number].messages[1].content for number in (0, 1))
    assert "Already tried" not in first
    assert "slower 0.51x, expected 1.40x" in second


def test_a_finished_search_returns_its_outcome_without_work(tmp_path):
    outcome, context = search(tmp_path, lambda rollout, step, attempt: answer(kernel(2.0)), steps=1)
    asked = len(context.model.calls)

    again = asyncio.run(run_problem(context))

    assert again == outcome
    assert len(context.model.calls) == asked


def test_rules_that_do_not_decide_let_the_model_name_the_state(tmp_path):
    from agent_support import make_knowledge

    outcome, context = search(
        tmp_path,
        lambda rollout, step, attempt: answer(kernel(2.0)),
        others={Purpose.CLASSIFY: '{"state": "memory_bandwidth_saturated", "why": "DRAM at 91 %"}'},
        knowledge=make_knowledge(tmp_path, decided=False),
        steps=1,
    )

    (classified,) = context.events.of("classified")
    assert (classified.state, classified.decided_by) == ("memory_bandwidth_saturated", "model")
    assert outcome.status is OutcomeStatus.IMPROVED


def test_an_unknown_state_or_garbage_from_the_model_leaves_the_rules_guess(tmp_path):
    from agent_support import make_knowledge

    for number, garbage in enumerate(('{"state": "made_up"}', "dunno", "{}")):
        root = tmp_path / str(number)
        root.mkdir()
        _, context = search(
            root,
            lambda rollout, step, attempt: answer(kernel(2.0)),
            others={Purpose.CLASSIFY: garbage},
            knowledge=make_knowledge(root, decided=False),
            steps=1,
        )
        (classified,) = context.events.of("classified")
        assert (classified.state, classified.decided_by) == ("wave_quantization", "rules (undecided)")


def test_the_same_seed_chooses_the_same_techniques(tmp_path):
    chosen = []
    for number in range(2):
        root = tmp_path / str(number)
        root.mkdir()
        _, context = search(root, lambda r, s, a: answer(kernel(0.5 + s / 100)), rollouts=1, steps=3, seed=7)
        chosen.append([event.technique for event in context.events.of("selected")])
    assert chosen[0] == chosen[1]


def test_decisions_come_from_measurement_alone(tmp_path):
    outcome, context = search(tmp_path, lambda r, s, a: answer(kernel(0.9), expected=50.0), steps=1)
    assert context.events.of("decided")[0].outcome == Decision.SLOWER
    assert outcome.status is OutcomeStatus.NO_IMPROVEMENT


@pytest.mark.parametrize(("recording", "counted"), [("r", 1), (None, 2)])
def test_a_recording_that_is_searched_anew_teaches_nothing_new(tmp_path, recording, counted):
    for name in ("first", "second"):
        _, context = search(
            tmp_path,
            lambda rollout, step, attempt: answer(kernel(1.5)),
            answerable=frozenset({"technique_0"}),
            run=name,
            directory=tmp_path / name,
            steps=1,
            recording=recording,
        )
    assert context.experience.transitions.count() == 2
    assert sum(row.sums.attempts for row in context.experience.document().statistics) == counted


def test_a_model_that_repeats_itself_is_asked_a_few_times_and_no_more(tmp_path):
    outcome, context = search(tmp_path, lambda r, s, a: answer(kernel(0.5)), rollouts=10, steps=10, repairs=3)
    asked = [request for request in context.model.requests if request.purpose in (Purpose.GENERATE, Purpose.REPAIR)]
    assert IDLE_REPLIES < len(asked) <= IDLE_REPLIES + 10
    assert StopReason.REPEATING in {result.stop for result in outcome.rollouts}
    assert f"last {IDLE_REPLIES} replies" in outcome.reason
    assert outcome.hint


def test_a_recording_may_give_every_rollout_the_same(tmp_path):
    outcome, _ = search(tmp_path, lambda r, s, a: answer(kernel(0.5)), rollouts=12, steps=1, recording="r")
    assert {result.stop for result in outcome.rollouts} == {StopReason.STEPS}


def test_rollouts_are_told_what_others_tried_on_the_same_kernel(tmp_path):
    _, context = search(
        tmp_path, lambda r, s, a: answer(kernel(0.5 + s / 100 + r / 1000)), rollouts=2, steps=3, patience=9
    )
    techniques = {
        t.technique: t.rollout for t in context.experience.transitions.query() if t.decision is Decision.SLOWER
    }
    told = [
        technique
        for request in context.model.requests
        for _, found, others in [request.messages[-1].content.partition("by others")]
        for technique in techniques
        if found and f"- {technique}: slower" in others
        if str(techniques[technique]) not in request.slot.split("rollout-")[1].split("/")[0]
    ]
    assert told


def test_edits_change_the_parent_or_the_kernel_to_be_repaired(tmp_path):
    replies = {
        (1, 0): edit(("// speed: 1.0", "// speed: 2.0"), ("// verdict: correct", "// verdict: compile_error")),
        (1, 1): edit(("// verdict: compile_error", "// verdict: correct")),
        (2, 0): edit(("// speed: 2.0", "// speed: 4.0")),
    }
    outcome, context = search(tmp_path, lambda _, step, attempt: replies[step, attempt], steps=2)
    assert outcome.speedup == pytest.approx(4.0)
    generated = context.events.of("generated")
    assert [event.edits for event in generated] == [2, 1, 1]
    assert all(0 < event.written_share < 2 for event in generated)


def test_a_repair_after_an_empty_reply_shows_the_kernel_to_be_mended(tmp_path):
    broken = kernel(2.0, tag="_broken", verdict=Verdict.COMPILE_ERROR)
    replies = {0: answer(broken), 1: "", 2: edit(("// verdict: compile_error", "// verdict: correct"))}
    outcome, context = search(tmp_path, lambda _, step, attempt: replies[attempt], steps=1, repairs=2)
    last = [one for one in context.model.requests if one.purpose is Purpose.REPAIR][1]
    assert broken.strip() in last.messages[2].content
    assert "boom" in last.messages[3].content, "and what was wrong with it"
    assert outcome.speedup == pytest.approx(2.0), "edits refer to it"


def test_edits_that_do_not_apply_go_back_once(tmp_path):
    misfit = edit(("// no such line", "// speed: 2.0"))
    _, context = search(tmp_path, lambda *_: misfit, steps=1, repairs=3)
    repairs = [one for one in context.model.requests if one.purpose is Purpose.REPAIR]
    assert len(repairs) == 1
    assert "// no such line" in repairs[0].messages[-2].content
    assert "edit 1" in repairs[0].messages[-1].content
    (transition,) = context.experience.transitions.query()
    assert transition.reason.startswith("inapplicable_edits")
