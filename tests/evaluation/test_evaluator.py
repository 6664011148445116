"""The evaluator against scripted kernels: every way to be wrong has its verdict, and honesty is never refused."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from budget_support import RELU_SLUG, reduced
from fake_device import FakeDevice, source

from kernelblaster.config import EvaluationConfig
from kernelblaster.devices.base import UNPERTURBED
from kernelblaster.devices.facts import DeviceKind, GpuReading
from kernelblaster.devices.failures import RunFailure, RunFailureKind
from kernelblaster.errors import DeviceError, UsageError
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.results import Decision, Evaluation, Verdict
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload


@pytest.fixture
def problem(store: InputStore) -> Problem:
    """ReLU with the sizes small and medium, both small."""
    return reduced(RELU_SLUG, store.directory.parent / "reduced", medium={"batch_size": 5, "dim": 259})


@pytest.fixture
def device() -> FakeDevice:
    return FakeDevice()


def make(
    device: FakeDevice, store: InputStore, *, workload: StandardWorkload = StandardWorkload.MEDIUM, sets: int = 4
) -> Evaluator:
    config = EvaluationConfig(input_sets=sets, max_seconds_timing=0.3)
    return Evaluator(device, store, config, workload, precision=Precision.FP32, seed=11)


@pytest.fixture
def evaluator(device: FakeDevice, store: InputStore) -> Evaluator:
    return make(device, store)


@pytest.fixture(autouse=True)
def no_spin_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripted GPU needs no time to reach its clock."""
    monkeypatch.setattr("kernelblaster.evaluation.timing.stopwatch.SPIN_UP_S", 0.0)


@pytest.mark.parametrize(
    ("name", "verdict", "words"),
    [
        ("scaled", Verdict.WRONG_VALUES, ["got is 2 times expected", "size small", "normal inputs"]),
        ("tail_missing", Verdict.WRONG_VALUES, ["never written", "axis 1", "index >= 960"]),
        ("tail_wrong", Verdict.WRONG_VALUES, ["all wrong elements have index >= 960 on axis 1", "got -7"]),
        ("lazy", Verdict.WRONG_VALUES, ["100.0 %", "never written", "filled with NaN"]),
        ("adds", Verdict.WRONG_VALUES, ["NaN", "nothing may be added"]),
        ("mutates", Verdict.INPUT_MUTATED, ["overwrote x"]),
        ("nan", Verdict.WRONG_VALUES, ["output[3, 5]", "got nan"]),
        ("flips", Verdict.NONDETERMINISTIC, ["right in one call, wrong in the next"]),
        ("caches", Verdict.REWARD_HACK, ["kept between calls"]),
        ("skips_when_timed", Verdict.REWARD_HACK, ["timed call did not do its work"]),
        ("wrong_when_timed", Verdict.NONDETERMINISTIC, ["wrong when timed"]),
        ("replays_when_timed", Verdict.REWARD_HACK, ["the result of other inputs"]),
        ("wrong_at_good_addresses", Verdict.WRONG_VALUES, ["got is 2 times expected"]),
        ("skips_late", Verdict.REWARD_HACK, ["timed call did not do its work"]),
        ("skips_in_batches", Verdict.REWARD_HACK, ["timed call did not do its work"]),
        ("keeps_an_earlier_slot", Verdict.NONDETERMINISTIC, ["wrong when timed"]),
        ("writes_around", Verdict.SANITIZER_ERROR, ["beyond the end of output"]),
        ("crashes", Verdict.RUNTIME_ERROR, ["cudaErrorIllegalAddress"]),
        ("crashes_when_timed", Verdict.RUNTIME_ERROR, ["while being timed"]),
        ("hangs", Verdict.TIMEOUT, ["60 s"]),
        ("impossible", Verdict.REWARD_HACK, ["faster than the hardware allows"]),
        ("stopped_clock", Verdict.REWARD_HACK, ["clocks disagree"]),
        ("side_stream", Verdict.REWARD_HACK, ["work outside the timed stream"]),
        ("unknown_library", Verdict.REWARD_HACK, ["links"]),
    ],
)
def test_bad_candidates_get_their_verdict(
    evaluator: Evaluator, problem: Problem, name: str, verdict: Verdict, words: list[str]
) -> None:
    evaluation = evaluator.evaluate(problem, source(name), baseline=source("honest"))
    assert evaluation.verdict is verdict, evaluation.reason
    for word in words:
        assert word in evaluation.reason
    assert evaluation.timing is None
    assert evaluation.comparison is None
    assert evaluation.profile is None


def test_clocks_that_are_moved_by_less_than_a_round_trip_are_found_out_by_batches(
    evaluator: Evaluator, problem: Problem
) -> None:
    evaluation = evaluator.evaluate(problem, source("moves_all_clocks"), baseline=source("thirty"))
    assert evaluation.verdict is Verdict.REWARD_HACK
    told, by_the_judge = (float(us) for us in re.findall(r"([\d.]+) us", evaluation.reason)[:2])
    assert told == pytest.approx(10.0, rel=0.01)
    assert by_the_judge == pytest.approx(30.0, rel=0.01)


def test_streams_of_its_own_cost_a_candidate_what_is_allowed_beyond_batches(
    evaluator: Evaluator, problem: Problem
) -> None:
    """Both claim 80 / 55; calls in a row take 55.8 us."""
    alone, streams = (
        evaluator.evaluate(problem, source(name), baseline=source("quick"))
        for name in ("gains_a_little", "gains_a_little_on_a_stream")
    )
    assert alone.comparison is not None
    assert streams.comparison is not None
    assert alone.comparison.speedup == pytest.approx(80 / 55, rel=0.003)
    assert streams.comparison.speedup == pytest.approx(80 / 55.8, rel=0.003)
    assert not any("instead of" in warning for warning in alone.warnings)
    assert any("instead of" in text and "cudaStreamCreateWithPriority" in text for text in streams.warnings)


def test_batches_confirm_a_finalist_in_every_pair_of_processes(evaluator: Evaluator, problem: Problem) -> None:
    once = evaluator.evaluate(problem, source("long"), baseline=source("slow"))
    assert once.comparison is not None
    assert once.comparison.batches is None
    final = evaluator.evaluate(problem, source("long"), baseline=source("slow"), process_pairs=3)
    assert final.comparison is not None
    assert final.comparison.batches is not None
    assert final.comparison.batches.candidate_us == pytest.approx(150.0, rel=0.05)
    assert final.comparison.batches.launches_hidden


def test_an_honest_candidate_is_correct_timed_and_profiled(evaluator: Evaluator, problem: Problem) -> None:
    evaluation = evaluator.evaluate(problem, source("quick"), baseline=source("honest"))
    assert evaluation.verdict is Verdict.CORRECT
    assert evaluation.reason == ""
    assert evaluation.comparison is not None
    assert evaluation.comparison.decision is Decision.FASTER
    assert evaluation.comparison.speedup == pytest.approx(1.25, rel=0.01)
    assert evaluation.timing == evaluation.comparison.candidate
    assert evaluation.timing.median_us == pytest.approx(80, rel=0.01)
    assert evaluation.timing.floor_us > 1
    assert evaluation.profile is not None
    assert {"build", "inputs", "verify", "time", "profile"} <= set(evaluation.seconds)
    assert [resource.registers for resource in evaluation.resources] == [16]


def test_every_size_and_several_distributions_are_checked(evaluator: Evaluator, problem: Problem) -> None:
    evaluation = evaluator.evaluate(problem, source("honest"))
    assert [(e.workload, e.distribution) for e in evaluation.errors] == [
        (StandardWorkload.SMALL, "normal"),
        (StandardWorkload.SMALL, "declared"),
        (StandardWorkload.SMALL, "cancelling"),
        (StandardWorkload.SMALL, "normal"),
        (StandardWorkload.SMALL, "coarse"),
        (StandardWorkload.MEDIUM, "mixed"),
    ]
    assert len({e.seed for e in evaluation.errors}) == 6
    assert evaluation.errors[0].bitwise_repeatable is True
    assert all(e.passed and e.budget_ratio <= 1 for e in evaluation.errors)


def test_extents_that_are_declared_nowhere_are_checked(evaluator: Evaluator, problem: Problem) -> None:
    declared = problem.workloads[StandardWorkload.SMALL]["dim"]
    assert declared % 64 != 63
    evaluation = evaluator.evaluate(problem, source("knows_the_declared_extents"))
    assert evaluation.verdict is Verdict.WRONG_VALUES
    assert "(batch_size = " in evaluation.reason
    assert "dim = " in evaluation.reason
    assert f"dim = {declared}" not in evaluation.reason


def test_equal_kernels_are_inconclusive_and_slower_ones_slower(evaluator: Evaluator, problem: Problem) -> None:
    same = evaluator.evaluate(problem, source("same"), baseline=source("honest"), profile=False)
    slow = evaluator.evaluate(problem, source("slow"), baseline=source("honest"), profile=False)
    assert same.comparison is not None
    assert slow.comparison is not None
    assert same.comparison.decision is Decision.INCONCLUSIVE
    assert slow.comparison.decision is Decision.SLOWER
    assert same.profile is None


def test_a_kernel_that_differs_in_its_last_bits_is_correct_with_a_warning(
    evaluator: Evaluator, problem: Problem
) -> None:
    evaluation = evaluator.evaluate(problem, source("jitters"))
    assert evaluation.verdict is Verdict.CORRECT, evaluation.reason
    assert evaluation.errors[0].bitwise_repeatable is False
    assert any("last bits" in warning for warning in evaluation.warnings)


def test_compile_errors_keep_both_ends_of_the_log(evaluator: Evaluator, problem: Problem) -> None:
    evaluation = evaluator.evaluate(problem, "int main() {}")
    assert evaluation.verdict is Verdict.COMPILE_ERROR
    assert 10_000 < len(evaluation.log) < 20_000
    assert "left out" in evaluation.log


@pytest.mark.parametrize("baseline", ["crashes", "crashes_when_timed", "no_such_kernel"])
def test_a_baseline_that_fails_costs_only_the_comparison(evaluator: Evaluator, problem: Problem, baseline: str) -> None:
    evaluation = evaluator.evaluate(problem, source("honest"), baseline=source(baseline))
    assert evaluation.verdict is Verdict.CORRECT
    assert evaluation.timing is not None
    if baseline != "crashes":
        assert evaluation.comparison is None
        assert any("no comparison" in warning for warning in evaluation.warnings)


def test_a_candidate_beside_which_the_baseline_fails_is_refused(evaluator: Evaluator, problem: Problem) -> None:
    evaluation = evaluator.evaluate(problem, source("hoards"), baseline=source("slow"))
    assert evaluation.verdict is Verdict.RUNTIME_ERROR
    assert evaluation.comparison is None
    assert "out of memory" in evaluation.reason
    assert evaluator.evaluate(problem, source("hoards")).verdict is Verdict.CORRECT


def test_a_failing_profiler_takes_nothing_back(evaluator: Evaluator, problem: Problem) -> None:
    evaluation = evaluator.evaluate(problem, source("slow"))
    assert evaluation.verdict is Verdict.CORRECT
    assert evaluation.timing is not None
    assert evaluation.profile is None
    assert any("no profile" in warning for warning in evaluation.warnings)


def test_output_of_the_wrong_size_is_a_wrong_shape(store: InputStore, problem: Problem) -> None:
    evaluation = make(FakeDevice(truncates=True), store).evaluate(problem, source("honest"))
    assert evaluation.verdict is Verdict.WRONG_SHAPE
    assert "bytes" in evaluation.reason


def test_a_modelled_device_is_asked_once_per_kernel(store: InputStore, problem: Problem) -> None:
    device = FakeDevice(DeviceKind.EMULATED)
    evaluation = make(device, store, workload=StandardWorkload.SMALL).evaluate(
        problem, source("quick"), baseline=source("honest")
    )
    assert evaluation.comparison is not None
    assert evaluation.comparison.speedup == pytest.approx(1.25)
    assert evaluation.comparison.decision is Decision.FASTER
    assert evaluation.comparison.threshold == 0.05
    assert evaluation.timing is not None
    assert evaluation.timing.modelled
    assert evaluation.timing.samples == 1
    assert evaluation.timing.host_median_us is None
    assert len(device.sampled) == 2
    assert device.most_holders == 0


def test_a_candidate_without_baseline_is_timed_alone(evaluator: Evaluator, problem: Problem) -> None:
    evaluation = evaluator.evaluate(problem, source("honest"))
    assert evaluation.comparison is None
    assert evaluation.timing is not None
    assert evaluation.timing.low_us <= evaluation.timing.median_us <= evaluation.timing.high_us
    assert evaluation.timing.samples >= 40


def test_processes_and_files_do_not_outlive_an_evaluation(
    evaluator: Evaluator, device: FakeDevice, problem: Problem, store: InputStore
) -> None:
    for name in ("honest", "crashes_when_timed", "mutates", "caches"):
        evaluator.evaluate(problem, source(name), baseline=source("honest"))
    assert device.opened == device.closed
    assert not list(store.directory.glob("bench-*"))


def test_candidate_and_baseline_see_the_same_values_and_none_twice(
    evaluator: Evaluator, device: FakeDevice, problem: Problem
) -> None:
    assert evaluator.evaluate(problem, source("quick"), baseline=source("honest"), profile=False).correct
    ours, theirs = device.perturbations["quick"], device.perturbations["honest"]
    assert len(set(ours)) == len(ours)
    assert UNPERTURBED not in ours
    turns = len(theirs) - len(theirs) % 20
    assert set(theirs[3:turns]) <= set(ours)
    checked = evaluator.checks(problem).perturbations
    assert len(set(checked)) == 3
    assert set(checked) <= set(ours)
    assert ours[-1] in checked


def test_skipping_half_of_the_timed_calls_is_found_out_sooner_or_later(evaluator: Evaluator, problem: Problem) -> None:
    verdicts = {evaluator.evaluate(problem, source("skips_every_second", str(n))).verdict for n in range(8)}
    assert Verdict.REWARD_HACK in verdicts


def test_judged_calls_lie_at_other_places_each_time(evaluator: Evaluator, device: FakeDevice, problem: Problem) -> None:
    checked = set(evaluator.checks(problem).perturbations)
    places = set()
    for n in range(4):
        device.perturbations.clear()
        evaluator.evaluate(problem, source("quick", str(n)), profile=False)
        places.add(
            tuple(place for place, perturbation in enumerate(device.perturbations["quick"]) if perturbation in checked)
        )
    assert len(places) > 1


def test_little_memory_costs_the_changing_values_and_says_so(
    device: FakeDevice, store: InputStore, problem: Problem
) -> None:
    device.facts = device.facts.model_copy(update={"memory_bytes": 20_000})
    evaluator = make(device, store)
    evaluation = evaluator.evaluate(problem, source("honest"), profile=False)
    assert evaluation.correct
    assert len(evaluation.warnings) == 1
    assert set(device.perturbations["honest"]) == {UNPERTURBED}
    assert evaluator.evaluate(problem, source("skips_late")).verdict is Verdict.REWARD_HACK


def test_the_clock_of_the_gpu_is_recorded(evaluator: Evaluator, device: FakeDevice, problem: Problem) -> None:
    device.clock_reading = GpuReading(sm_mhz=1980.0, temperature=51.0)
    evaluation = evaluator.evaluate(problem, source("quick"), baseline=source("honest"), profile=False)
    assert evaluation.timing is not None
    assert evaluation.timing.conditions is not None
    assert evaluation.timing.conditions.sm_mhz_median == 1980.0
    assert evaluation.timing.conditions.temperature_high == 51.0


def test_what_seems_faster_is_compared_in_several_pairs_of_processes(
    evaluator: Evaluator, device: FakeDevice, problem: Problem
) -> None:
    evaluation = evaluator.evaluate(problem, source("quick"), baseline=source("honest"), profile=False, process_pairs=5)
    comparison = evaluation.comparison
    assert comparison is not None
    ratios = [session.speedup for session in comparison.sessions]
    assert len(ratios) == 5
    assert comparison.speedup == sorted(ratios)[2]
    assert (comparison.low, comparison.high) == (min(ratios), max(ratios))
    assert comparison.spread == pytest.approx((max(ratios) - min(ratios)) / comparison.speedup)
    assert comparison.decision is Decision.FASTER
    assert evaluation.timing == comparison.candidate
    assert [name for name, _ in device.starts].count("quick") == 7
    assert device.opened == device.closed


@pytest.mark.parametrize("kind", DeviceKind)
def test_one_pair_of_processes_is_enough_where_more_cannot_change_anything(
    store: InputStore, problem: Problem, kind: DeviceKind
) -> None:
    device = FakeDevice(kind)
    name = "same" if kind is DeviceKind.CUDA else "quick"
    evaluation = make(device, store).evaluate(
        problem, source(name), baseline=source("honest"), profile=False, process_pairs=5
    )
    assert evaluation.comparison is not None
    assert evaluation.comparison.sessions == []
    assert [started for started, _ in device.starts].count(name) == 3


def test_processes_that_disagree_decide_nothing(evaluator: Evaluator, device: FakeDevice, problem: Problem) -> None:
    factors = iter((1.0, 1.0, 0.7, 1.0, 1.0, 1.3, 1.0, 1.0, 1.0, 1.0, 1.0))

    def change(name: str, elements: int) -> None:
        if name == "quick":
            device.factor = next(factors)

    device.at_start = change
    evaluation = evaluator.evaluate(problem, source("quick"), baseline=source("honest"), profile=False, process_pairs=5)
    assert evaluation.comparison is not None
    assert evaluation.comparison.decision is Decision.INCONCLUSIVE
    assert evaluation.comparison.spread > 0.3


def test_a_candidate_that_fails_in_a_later_process_is_refused(
    evaluator: Evaluator, device: FakeDevice, problem: Problem
) -> None:
    starts = iter(range(100))

    def fail(name: str, elements: int) -> None:
        if name == "quick" and next(starts) == 3:
            raise RunFailure(RunFailureKind.RUNTIME, "it crashed at its start")

    device.at_start = fail
    evaluation = evaluator.evaluate(problem, source("quick"), baseline=source("honest"), profile=False, process_pairs=5)
    assert evaluation.verdict is Verdict.RUNTIME_ERROR
    assert evaluation.comparison is None


def test_threads_take_turns_on_the_device(evaluator: Evaluator, device: FakeDevice, problem: Problem) -> None:
    names = ["honest", "scaled", "quick", "slow", "caches", "lazy"]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda name: evaluator.evaluate(problem, source(name), baseline=source("honest")), names))
    assert device.most_holders == 1
    assert [evaluation.correct for evaluation in found] == [True, False, True, True, False, False]


def test_device_errors_pass_through(
    evaluator: Evaluator, device: FakeDevice, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*args: object, **kwargs: object) -> None:
        raise DeviceError("the GPU is gone", hint="look for it")

    monkeypatch.setattr(device, "open", lost)
    with pytest.raises(DeviceError, match="gone"):
        evaluator.evaluate(problem, source("honest"))


def test_a_size_that_is_not_declared_is_a_usage_error(store: InputStore, problem: Problem) -> None:
    with pytest.raises(UsageError, match=r"\bfull\b"):
        make(FakeDevice(), store, workload=StandardWorkload.FULL).evaluate(problem, source("honest"))


def test_sanitize_reports_crashes_as_findings(evaluator: Evaluator, problem: Problem) -> None:
    assert evaluator.sanitize(problem, source("honest")) == []
    (finding,) = evaluator.sanitize(problem, source("crashes"))
    assert "IllegalAddress" in finding.message


def test_a_seed_repeats_the_inputs_and_no_seed_does_not(store: InputStore, problem: Problem) -> None:
    def seeds(evaluator: Evaluator) -> list[int]:
        return [key.seed for key in evaluator.plan(problem).small]

    config = EvaluationConfig()
    secret = [
        Evaluator(FakeDevice(), store, config, StandardWorkload.MEDIUM, precision=Precision.FP32) for _ in range(2)
    ]
    assert seeds(make(FakeDevice(), store)) == seeds(make(FakeDevice(), store))
    assert seeds(secret[0]) != seeds(secret[1])


def test_an_evaluation_with_infinite_errors_survives_json(evaluator: Evaluator, problem: Problem) -> None:
    evaluation = evaluator.evaluate(problem, source("lazy"))
    assert evaluation.errors[0].max_error == np.inf
    assert Evaluation.model_validate_json(evaluation.model_dump_json()).errors[0].max_error == np.inf


def test_one_input_set_is_the_timed_one(store: InputStore, problem: Problem) -> None:
    evaluation = make(FakeDevice(), store, sets=1).evaluate(problem, source("honest"))
    assert [e.workload for e in evaluation.errors] == [StandardWorkload.MEDIUM]


def test_printing_passed_proves_nothing(evaluator: Evaluator, problem: Problem, tmp_path: Path) -> None:
    evaluation = evaluator.evaluate(problem, source("lazy", 'int main() { printf("passed"); }'))
    assert evaluation.verdict is Verdict.WRONG_VALUES
