"""Counted calls run once per program and shape; sessions hand out one modelled sample."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from launch_records import Copy, resources

from kernelblaster.devices.base import Build, CallResult, Harness, Job, JobTensor, TimingSample
from kernelblaster.devices.emulated.counted_calls import Counted, CountedCalls
from kernelblaster.devices.emulated.session import EmulatedSession
from kernelblaster.devices.failures import RunFailure, RunFailureKind
from kernelblaster.devices.profiles import KernelResources
from kernelblaster.errors import DeviceError
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.problem import Precision, Problem, ProblemId, TensorRole, TensorSpec
from ptxemu.counters.launch import LaunchRecord
from ptxemu.counters.record import HostWorkRecord, TransferKind, TransferRecord, read_records
from ptxemu.errors import CoreFailure
from ptxemu.model.architecture import gpu_model
from ptxemu.model.call import CallEstimate

H200 = gpu_model("h200")


def build(digest: str = "a", *, registers: int = 32) -> Build:
    problem = Problem(ProblemId(1, 1), "Copy", Path("/none"), workloads={})
    harness = Harness(problem, Precision.FP32, Path("/none/driver.o"), "launch")
    return Build(
        digest=digest,
        program=Path("/none/program"),
        source_path=Path("/none/candidate.cu"),
        harness=harness,
        resources=(KernelResources(**asdict(resources(registers=registers))),),
        seconds=0.0,
    )


def job(*, n: int = 8, path: str = "/dev/shm/x") -> Job:
    tensor = JobTensor(TensorSpec("x", TensorRole.INPUT, DType.FLOAT32, (n,)), Path(path))
    return Job(tensors=(tensor,), sizes={"n": n}, scalars={"eps": 1e-5})


class Counter:
    """Stands for the counted run; remembers how often it was asked."""

    def __init__(self, record: LaunchRecord, *, seconds: float = 0.0) -> None:
        self.record = record
        self.seconds = seconds
        self.runs = 0
        self.perturbations: list[int] = []

    def __call__(self, build: Build, job: Job, timeout_s: float, perturbation: int) -> Counted:
        self.runs += 1
        self.perturbations.append(perturbation)
        time.sleep(self.seconds)
        return Counted([self.record], CallResult(mutated_inputs=("counted",)))


def test_one_run_serves_every_question_about_a_shape() -> None:
    counter = Counter(Copy(64).record())
    calls = CountedCalls(H200, counter)
    first = calls.estimate(build(), job(), timeout_s=1)
    other_values = calls.estimate(build(), job(path="/dev/shm/y"), timeout_s=1)
    assert first is other_values
    assert counter.runs == 1


def test_other_shape_or_program_is_counted_anew() -> None:
    counter = Counter(Copy(64).record())
    calls = CountedCalls(H200, counter)
    calls.estimate(build(), job(), timeout_s=1)
    calls.estimate(build(), job(n=9), timeout_s=1)
    calls.estimate(build("b"), job(), timeout_s=1)
    assert counter.runs == 3


def test_simultaneous_questions_share_one_run() -> None:
    counter = Counter(Copy(64).record(), seconds=0.1)
    calls = CountedCalls(H200, counter)
    threads = [threading.Thread(target=calls.estimate, args=(build(), job()), kwargs={"timeout_s": 1}) for _ in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.runs == 1


@pytest.mark.parametrize("worked_us", [(900, 800, 850), (900, 0, 850)])
def test_host_work_counts_as_in_the_calmest_of_three_runs(worked_us: tuple[int, ...]) -> None:
    launch = Copy(64).record()
    left = list(worked_us)

    def count(build: Build, job: Job, timeout_s: float, perturbation: int) -> Counted:
        own = left.pop(0)
        return Counted([launch, *([HostWorkRecord(own * 1000)] if own else [])], None)

    calm = CountedCalls(H200, Counter(launch)).estimate(build(), job(), timeout_s=1)
    known = CountedCalls(H200, count).estimate(build(), job(), timeout_s=1)
    assert known.host_us == min(worked_us)
    assert known.device_us == pytest.approx(calm.device_us + min(worked_us))
    assert calm.host_us == 0


def test_launch_that_fits_no_sm_is_a_runtime_error() -> None:
    calls = CountedCalls(H200, Counter(Copy(1, 1024).record()))
    with pytest.raises(RunFailure) as caught:
        calls.estimate(build(registers=255), job(), timeout_s=1)
    assert caught.value.kind is RunFailureKind.RUNTIME


def test_kernel_without_resources_is_the_devices_fault() -> None:
    calls = CountedCalls(H200, Counter(Copy(1).record()))
    with pytest.raises(DeviceError, match="ptxas"):
        calls.estimate(replace(build(), resources=()), job(), timeout_s=1)


class Process:
    """Stands for the candidate's process."""

    def __init__(self) -> None:
        self.poisons: list[int] = []
        self.entered = self.left = False
        self.fetched = self.reloaded = 0
        self.executed: list[int] = []

    def __enter__(self) -> Process:
        self.entered = True
        return self

    def __exit__(self, *_: object) -> None:
        self.left = True

    def call(self, poison: int) -> CallResult:
        self.poisons.append(poison)
        return CallResult(mutated_inputs=())

    def time_calls(self, perturbations: Sequence[int], fills: int = 1) -> list[TimingSample]:
        self.executed += perturbations
        return []

    def fetch(self) -> CallResult:
        self.fetched += 1
        return CallResult(mutated_inputs=())

    def reload(self) -> None:
        self.reloaded += 1

    def batches(self) -> None:
        return None


def modelled(
    device_us: float, result: CallResult | None = None
) -> Callable[[int], tuple[CallEstimate, CallResult | None]]:
    return lambda perturbation: (CallEstimate(kernels=(), transfers_us=0.0, device_us=device_us), result)


def test_session_executes_in_the_process_and_times_by_the_model() -> None:
    process = Process()
    with EmulatedSession(process, modelled(12.5)) as session:
        session.call(0xAB)
        samples = session.time_calls(range(30))
    assert process.poisons == [0xAB]
    assert samples == [TimingSample(device_us=12.5, host_us=None)]
    assert process.entered
    assert process.left


def test_outputs_fetched_after_new_inputs_come_from_a_new_call() -> None:
    process = Process()
    with EmulatedSession(process, modelled(1.0)) as session:
        session.call(0)
        session.fetch()
        session.reload()
        session.fetch()
        session.fetch()
    assert process.poisons == [0, 0xFF]
    assert process.reloaded == 1
    assert process.fetched == 2


def test_outputs_of_a_sample_are_those_of_the_counted_call_or_executed_where_it_was_counted_before() -> None:
    process, counted = Process(), CallResult(mutated_inputs=("x",))
    with EmulatedSession(process, modelled(1.0, counted)) as session:
        session.time_calls([7])
        assert session.fetch() is counted
    with EmulatedSession(process, modelled(1.0)) as session:
        session.time_calls([7])
        assert process.executed == []
        session.fetch()
    assert process.executed == [7]
    assert process.fetched == 1


def test_the_call_that_is_counted_has_the_variant_that_is_asked_for() -> None:
    counter = Counter(Copy(64).record())
    calls = CountedCalls(H200, counter)
    estimate, result = calls.run(build(), job(), 1, 77)
    assert result == CallResult(mutated_inputs=("counted",))
    assert calls.run(build(), job(), 1, 78) == (estimate, None)
    assert counter.perturbations == [77]


def test_no_sample_asked_is_none_given() -> None:
    assert EmulatedSession(Process(), modelled(1.0)).time_calls([]) == []


def test_report_reads_back(tmp_path: Path) -> None:
    launch, fill = Copy(3).record(), TransferRecord(transfer=TransferKind.FILL, bytes=64)
    report = tmp_path / "report.jsonl"
    host = HostWorkRecord(80_000)
    report.write_text("".join(f"{json.dumps(asdict(one))}\n" for one in (launch, fill, host)), encoding="utf-8")
    assert read_records(report) == [launch, fill, host]


def test_call_without_launches_leaves_no_report(tmp_path: Path) -> None:
    assert read_records(tmp_path / "absent.jsonl") == []


def test_torn_report_is_the_devices_fault(tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    report.write_text('{"kernel": "k", "grid": [1', encoding="utf-8")
    with pytest.raises(CoreFailure, match="report"):
        read_records(report)
