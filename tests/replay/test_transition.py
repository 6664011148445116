from __future__ import annotations

import math

import pytest
from pydantic import ValidationError
from replay_samples import transition

from kernelblaster.evaluation.results import Comparison, Decision, Timing, Verdict
from kernelblaster.replay.transition import FAILURE_REWARD, Transition, metric_deltas, reward


def comparison(speedup: float, decision: Decision) -> Comparison:
    timing = Timing(
        median_us=1, low_us=1, high_us=1, iqr_us=0, samples=30, floor_us=0.5, floor_fraction=0.5, modelled=False
    )
    return Comparison(
        speedup=speedup, low=speedup, high=speedup, decision=decision, threshold=0.01, baseline=timing, candidate=timing
    )


@pytest.mark.parametrize("speedup", [0.5, 1.2, 8.0])
def test_a_decided_comparison_is_rewarded_by_its_logarithm(speedup):
    decision = Decision.FASTER if speedup > 1 else Decision.SLOWER
    assert reward(Verdict.CORRECT, comparison(speedup, decision)) == pytest.approx(math.log(speedup))


def test_inconclusive_is_worth_nothing_even_when_the_estimate_is_high():
    assert reward(Verdict.CORRECT, comparison(1.4, Decision.INCONCLUSIVE)) == 0.0


def test_every_failure_costs_something_and_cheating_costs_most():
    failures = [verdict for verdict in Verdict if verdict is not Verdict.CORRECT]
    assert set(failures) == set(FAILURE_REWARD)
    assert all(reward(verdict, None) < 0 for verdict in failures)
    assert min(failures, key=lambda verdict: reward(verdict, None)) is Verdict.REWARD_HACK


def test_a_failure_is_not_rewarded_for_a_comparison_it_should_not_have():
    assert reward(Verdict.WRONG_VALUES, comparison(10, Decision.FASTER)) < 0


def test_a_failed_candidate_has_no_speedup():
    with pytest.raises(ValidationError, match="speed-up"):
        Transition.model_validate(transition().model_dump() | {"verdict": Verdict.WRONG_VALUES})


def test_half_a_comparison_is_refused():
    with pytest.raises(ValidationError, match="together"):
        Transition.model_validate(transition().model_dump() | {"decision": None})


def test_it_survives_json():
    original = transition(metric_deltas={"gpu__time_duration.sum": -3.0}, dollars=None)
    assert Transition.model_validate_json(original.model_dump_json()) == original


def test_the_digest_names_run_and_slot_alone():
    assert transition("s", speedup=2).digest == transition("s", speedup=0.5).digest
    assert transition("s").digest != transition("t").digest
    assert transition("s").digest != transition("s", run="run-b").digest


def test_deltas_leave_out_what_one_side_lacks():
    assert metric_deltas({"a": 1.0, "b": 5.0}, {"a": 4.0, "c": 2.0}) == {"a": 3.0}


def test_replays_of_a_recording_are_the_same_evidence():
    first = transition("s", run="a", recording="r1", speedup=1.5).as_evidence()
    again = transition("t", run="b", recording="r1", speedup=1.6).as_evidence()
    assert first.digest == again.digest
    assert (first.run, first.speedup) == (again.run, 1.5)
    for other in ({"recording": "r2"}, {"candidate_sha256": "f" * 64}, {"technique": "other"}, {"arch": "sm_80"}):
        assert transition("t", run="b", **{"recording": "r1", **other}).as_evidence().digest != first.digest
    asked = transition("s", run="a")
    assert asked.as_evidence() is asked
