"""How many processes an evaluation starts, which of them start together, and what a failing start costs."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest
from budget_support import RELU_SLUG, reduced
from fake_device import FakeDevice, source

from kernelblaster.config import EvaluationConfig
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.devices.failures import RunFailure, RunFailureKind
from kernelblaster.errors import DeviceError, DeviceMemoryFull
from kernelblaster.evaluation import pipeline as case
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.processes import candidate_process as process
from kernelblaster.evaluation.results import Evaluation, Verdict
from kernelblaster.evaluation.timing import stopwatch as timing
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload
from kernelblaster.runs.progress import ProgressDevice

MEDIUM = 5 * 259
"""Elements of the timed size."""


@pytest.fixture(autouse=True)
def no_spin_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "SPIN_UP_S", 0.0)


@pytest.fixture
def problem(store: InputStore) -> Problem:
    return reduced(RELU_SLUG, store.directory.parent / "reduced", medium={"batch_size": 5, "dim": 259})


@pytest.fixture
def device() -> FakeDevice:
    return FakeDevice()


def evaluate(
    device: FakeDevice,
    store: InputStore,
    problem: Problem,
    name: str = "quick",
    *,
    baseline: str | None = "honest",
    workload: StandardWorkload = StandardWorkload.MEDIUM,
) -> Evaluation:
    config = EvaluationConfig(input_sets=4, max_seconds_timing=0.1)
    evaluator = Evaluator(device, store, config, workload, precision=Precision.FP32, seed=11)
    evaluation = evaluator.evaluate(problem, source(name), baseline=None if baseline is None else source(baseline))
    assert device.opened == device.closed
    assert not list(store.directory.glob("bench-*"))
    return evaluation


def workloads(device: FakeDevice) -> Counter[tuple[str, bool]]:
    """Processes per kernel and whether they are of the timed size."""
    return Counter((name, elements == MEDIUM) for name, elements in device.starts)


@pytest.mark.parametrize("kind", DeviceKind)
def test_one_process_verifies_and_times_the_timed_size(kind: DeviceKind, store: InputStore, problem: Problem) -> None:
    device = FakeDevice(kind)
    assert evaluate(device, store, problem).verdict is Verdict.CORRECT
    assert workloads(device) == {("quick", False): 2, ("quick", True): 1, ("honest", True): 1}


def test_without_a_baseline_there_is_one_process_less(device: FakeDevice, store: InputStore, problem: Problem) -> None:
    assert evaluate(device, store, problem, baseline=None).verdict is Verdict.CORRECT
    assert workloads(device) == {("quick", False): 2, ("quick", True): 1}


def test_one_size_takes_two_processes_to_verify_and_two_to_time(
    device: FakeDevice, store: InputStore, problem: Problem
) -> None:
    assert evaluate(device, store, problem, workload=StandardWorkload.SMALL).verdict is Verdict.CORRECT
    assert Counter(name for name, _ in device.starts) == {"quick": 3, "honest": 1}


def test_all_processes_start_together(device: FakeDevice, store: InputStore, problem: Problem) -> None:
    together = threading.Barrier(4)
    device.at_start = lambda name, elements: together.wait(timeout=60) and None
    assert evaluate(device, store, problem).verdict is Verdict.CORRECT


def test_nothing_runs_beside_what_is_timed_or_profiled(device: FakeDevice, store: InputStore, problem: Problem) -> None:
    assert evaluate(device, store, problem).verdict is Verdict.CORRECT
    assert device.most_while_timing == 2, "candidate and baseline"
    assert device.most_while_profiling == 0


def test_large_inputs_wait_for_the_cheap_size(
    device: FakeDevice, store: InputStore, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(case, "EARLY_BYTES", 4 * MEDIUM - 1)
    assert evaluate(device, store, problem, "scaled").verdict is Verdict.WRONG_VALUES
    assert not any(timed for _, timed in workloads(device))
    assert evaluate(device, store, problem).verdict is Verdict.CORRECT
    assert device.settled, "the profiler loads its inputs while the candidate is verified at the timed size"
    assert device.timed_unsettled == 0


def test_a_profiler_waits_where_the_device_has_no_room_for_further_inputs(
    device: FakeDevice, store: InputStore, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(case, "EARLY_BYTES", 0)
    monkeypatch.setattr(case, "ROOM", 2**30)
    assert evaluate(device, store, problem).profile is not None
    assert not device.settled


@pytest.mark.parametrize(("name", "verdict"), [("scaled", Verdict.WRONG_VALUES), ("caches", Verdict.REWARD_HACK)])
def test_a_candidate_wrong_at_the_cheap_size_is_never_called_at_the_timed_one(
    device: FakeDevice, store: InputStore, problem: Problem, name: str, verdict: Verdict
) -> None:
    evaluation = evaluate(device, store, problem, name)
    assert evaluation.verdict is verdict
    assert {error.workload for error in evaluation.errors} == {StandardWorkload.SMALL}
    assert device.sampled == []


def failing(name: str, error: Exception) -> object:
    def at_start(started: str, elements: int) -> None:
        if started == name and elements == MEDIUM:
            raise error

    return at_start


CRASH = RunFailure(RunFailureKind.RUNTIME, "it crashed at its start", "its log")
LOST = DeviceError("the GPU is gone", hint="look for it")


FULL = DeviceMemoryFull("the GPU's memory is full", hint="free some")


@pytest.mark.parametrize("name", ["quick", "honest"])
def test_a_process_that_found_the_memory_full_is_started_again_when_the_others_are_gone(
    device: FakeDevice, store: InputStore, problem: Problem, name: str
) -> None:
    failed: list[str] = []

    def at_start(started: str, elements: int) -> None:
        if started == name and elements == MEDIUM and not failed:
            failed.append(started)
            raise FULL

    device.at_start = at_start
    assert evaluate(device, store, problem).comparison is not None
    assert workloads(device)[name, True] == 2


def test_a_process_that_always_finds_the_memory_full_is_no_verdict(
    device: FakeDevice, store: InputStore, problem: Problem
) -> None:
    device.at_start = failing("quick", FULL)
    with pytest.raises(DeviceMemoryFull):
        evaluate(device, store, problem)
    assert workloads(device)["quick", True] == 2


def test_a_candidate_that_does_not_start_at_the_timed_size_fails_there(
    device: FakeDevice, store: InputStore, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "at_start", failing("quick", CRASH))
    evaluation = evaluate(device, store, problem)
    assert evaluation.verdict is Verdict.RUNTIME_ERROR
    assert evaluation.reason == f"size {StandardWorkload.MEDIUM}: {CRASH.reason}"
    assert evaluation.log == "its log"
    assert evaluation.timing is None


@pytest.mark.parametrize("error", [CRASH, LOST])
def test_the_cheap_size_has_the_first_word(
    device: FakeDevice, store: InputStore, problem: Problem, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(device, "at_start", failing("scaled", error))
    evaluation = evaluate(device, store, problem, "scaled")
    assert evaluation.verdict is Verdict.WRONG_VALUES


def test_a_baseline_that_does_not_start_costs_only_the_comparison(
    device: FakeDevice, store: InputStore, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "at_start", failing("honest", CRASH))
    evaluation = evaluate(device, store, problem)
    assert evaluation.verdict is Verdict.CORRECT
    assert evaluation.timing is not None
    assert evaluation.comparison is None
    assert any(CRASH.reason in warning for warning in evaluation.warnings)


@pytest.mark.parametrize("name", ["quick", "honest"])
def test_a_lost_gpu_is_no_verdict(
    device: FakeDevice, store: InputStore, problem: Problem, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(device, "at_start", failing(name, LOST))
    with pytest.raises(DeviceError, match="gone"):
        evaluate(device, store, problem)
    assert device.opened == device.closed
    assert device.holders == 0


def test_a_failed_baseline_has_ended_before_the_candidate_is_timed_alone(
    device: FakeDevice, store: InputStore, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone: list[int] = []
    original = timing.Stopwatch.time_alone

    def time_alone(watch: timing.Stopwatch, session: timing.Sampled) -> object:
        alone.append(device.opened - device.closed)
        return original(watch, session)

    monkeypatch.setattr(timing.Stopwatch, "time_alone", time_alone)
    assert evaluate(device, store, problem, baseline="crashes_when_timed").verdict is Verdict.CORRECT
    assert alone == [1]


def test_verify_and_time_keep_their_seconds(device: FakeDevice, store: InputStore, problem: Problem) -> None:
    evaluation = evaluate(device, store, problem)
    assert list(evaluation.seconds) == ["build", "inputs", "verify", "time", "profile"]


@pytest.mark.parametrize("workload", [StandardWorkload.SMALL, StandardWorkload.MEDIUM])
def test_a_profiler_has_settled_before_anything_is_timed_and_ends(
    device: FakeDevice, store: InputStore, problem: Problem, workload: StandardWorkload
) -> None:
    evaluation = evaluate(device, store, problem, workload=workload)
    assert evaluation.profile is not None
    assert device.settled == (workload is StandardWorkload.MEDIUM), (
        "what is verified and timed at once is profiled last"
    )
    assert device.timed_unsettled == 0
    assert device.profilers == 0


def test_a_wrong_candidate_ends_its_profiler(device: FakeDevice, store: InputStore, problem: Problem) -> None:
    evaluation = evaluate(device, store, problem, name="scaled")
    assert not evaluation.correct
    assert evaluation.profile is None
    assert device.profilers == 0


@pytest.fixture
def deferring() -> FakeDevice:
    return FakeDevice(deferred_loading=True)


def test_processes_start_while_the_candidate_is_compiled(
    deferring: FakeDevice, store: InputStore, problem: Problem
) -> None:
    waiting, profilers = threading.Semaphore(0), []

    def compile_when_all_wait(text: str) -> None:
        if text == source("quick"):
            for _ in range(4):
                assert waiting.acquire(timeout=60), "the candidate at three sizes, and its baseline"
            profilers.append(deferring.profilers)

    deferring.waits, deferring.compiles = waiting.release, compile_when_all_wait
    assert evaluate(deferring, store, problem).verdict is Verdict.CORRECT
    assert profilers == [1]
    assert deferring.most_while_timing == 2, "candidate and baseline"


def test_what_a_kernel_that_hangs_is_said_to_do(deferring: FakeDevice, store: InputStore, problem: Problem) -> None:
    """Its processes start first, and the end of the compilation is told of after that."""
    waiting, told = threading.Semaphore(0), []

    def compile_when_all_wait(text: str) -> None:
        for _ in range(3):
            assert waiting.acquire(timeout=60), "the candidate at three sizes"

    deferring.waits, deferring.compiles = waiting.release, compile_when_all_wait
    config = EvaluationConfig(input_sets=4, max_seconds_timing=0.1)
    device = ProgressDevice(deferring, told.append)
    evaluator = Evaluator(device, store, config, StandardWorkload.MEDIUM, precision=Precision.FP32, seed=11)
    assert evaluator.evaluate(problem, source("hangs")).verdict is Verdict.TIMEOUT
    assert told[-1].startswith("running")


def test_nothing_starts_before_the_candidate_is_compiled_while_somebody_else_measures(
    deferring: FakeDevice, store: InputStore, problem: Problem
) -> None:
    waits, measured = [], threading.Event()

    def compile_while_another_measures(text: str) -> None:
        if text == source("quick"):
            time.sleep(0.2)  # a start would have come by now
            waits.append(started.acquire(blocking=False))
            measured.set()

    def measure_elsewhere() -> None:
        with deferring.exclusive():
            held.set()
            assert measured.wait(60)

    started, held = threading.Semaphore(0), threading.Event()
    deferring.waits, deferring.compiles = started.release, compile_while_another_measures
    other = threading.Thread(target=measure_elsewhere)
    other.start()
    assert held.wait(60)
    assert evaluate(deferring, store, problem).verdict is Verdict.CORRECT
    other.join()
    assert waits == [False]


def test_a_candidate_that_compiles_for_long_lets_others_measure(
    deferring: FakeDevice, store: InputStore, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "COMPILING_S", 0.5)

    def compile_until_another_has_measured(text: str) -> None:
        if text == source("quick"):
            assert waiting.acquire(timeout=60), "it began to wait"
            with deferring.exclusive():  # not before the evaluation lets go
                measured.append(deferring.running)

    waiting, measured = threading.Semaphore(0), []
    deferring.waits, deferring.compiles = waiting.release, compile_until_another_has_measured
    evaluation = evaluate(deferring, store, problem)
    assert (evaluation.verdict, measured) == (Verdict.CORRECT, [0])
    assert deferring.most_while_timing == 2


def test_a_candidate_that_does_not_compile_ends_what_waits_for_it(
    deferring: FakeDevice, store: InputStore, problem: Problem
) -> None:
    evaluator = Evaluator(
        deferring, store, EvaluationConfig(input_sets=4), StandardWorkload.MEDIUM, precision=Precision.FP32, seed=11
    )
    evaluation = evaluator.evaluate(problem, "int = 3;", baseline=source("honest"))
    assert evaluation.verdict is Verdict.COMPILE_ERROR
    assert "build" in evaluation.seconds
    assert deferring.opened == deferring.closed
    assert deferring.profilers == deferring.holders == 0
    assert not list(store.directory.glob("bench-*"))


def test_a_device_that_fails_to_compile_is_an_error(deferring: FakeDevice, store: InputStore, problem: Problem) -> None:
    def lose(text: str) -> None:
        if text == source("quick"):
            raise DeviceError("the disk is full", hint="free some of it")

    deferring.compiles = lose
    with pytest.raises(DeviceError, match="disk"):
        evaluate(deferring, store, problem)
    assert deferring.opened == deferring.closed
    assert deferring.profilers == deferring.holders == 0
