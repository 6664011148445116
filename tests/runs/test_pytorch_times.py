"""A sweep of PyTorch's times: finished rows are kept, missing modes are added, what fails is told and not retried."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from kernelblaster.devices.cuda.probe import GpuInfo
from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.errors import DeviceError, MachineError
from kernelblaster.evaluation.timing import pytorch_times
from kernelblaster.evaluation.timing.pytorch_times import (
    ModeTime,
    PytorchTimes,
    TimesAgain,
    TorchMode,
    read_times,
    shipped_times,
    times_on,
)
from kernelblaster.problems.problem import Precision, Problem, ProblemId
from kernelblaster.problems.tags import Tag
from kernelblaster.runs.pytorch_measurement import TimesItem
from kernelblaster.runs.pytorch_times import Failed, TimesPlan, time_pytorch, wanted_rows
from kernelblaster.runs.worker_pool import WorkerLost
from kernelblaster.storage.jsonl import append_line

GPU = "NVIDIA Test"
INFO = GpuInfo(GPU, "sm_90", "GPU-1", 1 << 30, "1", "13.0")
MODES = (TorchMode.EAGER, TorchMode.COMPILE)
Make = Callable[..., Problem]


def row_of(item: TimesItem, us: float = 10.0) -> PytorchTimes:
    """A row in which every mode takes the same time."""
    one = ModeTime(
        us=us, low_us=us - 1, high_us=us + 1, samples=40,
        wall_us=3 * us, wall_low_us=2 * us, wall_high_us=4 * us, launch_us=5.0,
    )  # fmt: skip
    return PytorchTimes(
        problem=str(item.problem.id), name=item.problem.name, precision=item.precision, workload=item.workload,
        digest=item.digest, gpu=GPU, driver="1", torch="2", settings=None, cover_us=50.0, conditions=None,
        floor_us=4.0, times=dict.fromkeys(item.modes, one), seconds=1.0, at=time.time(),
    )  # fmt: skip


class InTurn:
    """Makes rows one after the other; the names of some problems say what goes wrong."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def run(
        self, work: Iterable[TimesItem], more: Callable[[], bool]
    ) -> Iterator[tuple[TimesItem, PytorchTimes | Failed | WorkerLost]]:
        for item in work:
            if not more():
                return
            match item.problem.name:
                case "crowded" if self.jobs > 1:
                    yield item, Failed("out of memory", out_of_memory=True)
                case "huge":
                    yield item, Failed("out of memory", out_of_memory=True)
                case "broken":
                    yield item, Failed("the reference fails")
                case "dying":
                    yield item, WorkerLost("its process ended with 7")
                case _:
                    yield item, row_of(item)


@dataclass
class Compilers:
    """Compile nothing, and note what they were given."""

    jobs: int
    given: ClassVar[list[list[str]]] = []

    def run(self, work: Iterable[TimesItem], more: Callable[[], bool]) -> Iterator[tuple[TimesItem, str]]:
        taken = [item for item in work if more()]
        self.given.append([item.problem.name for item in taken])
        yield from ((item, "") for item in taken)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Problems of which nothing but the reference's text is looked at."""

    def problem(number: int, name: str = "Sound", level: int = 1, tag: Tag = Tag.MATMUL) -> Problem:
        directory = tmp_path / f"{level}_{number}_{name}"
        directory.mkdir()
        (directory / "reference.py").write_text(f"# {number}\n")
        return Problem(ProblemId(level, number), name, directory, {"full": {"n": 8}, "small": {"n": 2}}, tags=(tag,))

    return problem


def swept(plan: TimesPlan, records: Path) -> list[PytorchTimes]:
    return list(time_pytorch(plan, records, lambda stage: None, gpu=INFO, workers=InTurn, compilers=Compilers))


def plan_of(*problems: Problem) -> TimesPlan:
    return TimesPlan(problems, [Precision.FP16], ["full"], MODES, jobs=2)


def test_a_sweep_goes_on_where_it_stopped_and_adds_modes(make: Make, tmp_path: Path) -> None:
    plan, records = plan_of(make(3, level=3), make(1), make(2)), tmp_path / "deep" / "times.jsonl"
    none = swept(replace(plan, minutes=0.0), records)
    assert none == []
    first = swept(plan, records)
    assert [row.problem for row in first] == ["level1/001", "level1/002", "level3/003"], "the cheapest come first"
    with records.open("a") as file:
        file.write('{"torn": ')
    text = records.read_bytes()
    assert sorted(swept(plan, records), key=lambda row: row.problem) == first
    assert len(records.read_bytes()) < len(text), "the torn line alone is gone"
    tuned = swept(replace(plan, modes=(*MODES, TorchMode.MAX_AUTOTUNE)), records)
    assert {row.problem: len(row.times) for row in tuned} == {"level1/001": 3, "level1/002": 3, "level3/003": 3}
    assert len(read_times([records])) == wanted_rows(plan) == 3
    plan.problems[1].reference_path.write_text("# another\n")
    (fresh,) = [row for row in swept(plan, records) if row.problem == "level1/001"]
    assert set(fresh.times) == set(MODES), "nothing is kept of another reference"


def test_a_row_that_fails_is_told_once(make: Make, tmp_path: Path) -> None:
    problems = [make(1, "dying"), make(2, "broken"), make(3, "crowded"), make(4, "huge"), make(5)]
    plan, records = plan_of(*problems), tmp_path / "times.jsonl"
    rows = {row.name: row for row in swept(plan, records)}
    assert set(rows) == {"dying", "broken", "crowded", "huge", "Sound"}
    assert "7" in rows["dying"].failures[TorchMode.EAGER]
    assert rows["broken"].failures[TorchMode.COMPILE] == "the reference fails"
    assert rows["huge"].best is None
    assert rows["crowded"].best == rows["Sound"].best, "alone it has the memory"
    before = records.read_bytes()
    assert len(swept(plan, records)) == 5
    assert records.read_bytes() == before


def test_lines_of_other_versions_replace_and_of_the_same_join(make: Make) -> None:
    item = TimesItem(make(1), Precision.FP16, "full", (TorchMode.EAGER,), "d", 0.1)
    old, more = row_of(item), row_of(replace(item, modes=(TorchMode.COMPILE,)), us=7.0)
    joined = old.joined(more)
    assert set(joined.times) == {TorchMode.EAGER, TorchMode.COMPILE}
    assert joined.best == (TorchMode.COMPILE, more.times[TorchMode.COMPILE])
    assert old.joined(more.model_copy(update={"torch": "3"})).times == more.times
    failed = more.model_copy(update={"times": {}, "failures": {TorchMode.COMPILE: "no memory"}})
    assert failed.joined(more).failures == {}
    assert old.joined(failed).failures == {TorchMode.COMPILE: "no memory"}
    kept = old.joined(failed.model_copy(update={"torch": "3"}))
    assert (kept.times, kept.torch, set(kept.failures)) == (old.times, old.torch, {TorchMode.COMPILE})


def test_shipped_times_are_those_of_the_same_gpu_and_reference(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, records = make(1), tmp_path / "data" / "baselines" / "test" / "fp16.jsonl"
    (row,) = swept(plan_of(problem), records)
    monkeypatch.setattr(pytorch_times, "data_dir", lambda: tmp_path / "data")
    shipped_times.cache_clear()
    facts = DeviceFacts(
        kind=DeviceKind.CUDA, name=GPU, arch="sm_90", compile_arch="sm_90a", sm_count=1, clock_mhz=1, memory_bytes=1,
        l2_bytes=1, shared_per_block=1, shared_per_sm=1, registers_per_sm=1, max_warps_per_sm=1, peak_bandwidth=1,
        peak_flops={}, peak_source="",
    )  # fmt: skip
    assert times_on(facts, problem, Precision.FP16, "full") == row
    assert times_on(facts, problem, Precision.FP32, "full") is None
    emulated = facts.model_copy(update={"kind": DeviceKind.EMULATED})
    assert times_on(emulated, problem, Precision.FP16, "full") is None, "measured times stand beside no modelled one"
    problem.reference_path.write_text("# another\n")
    assert times_on(facts, problem, Precision.FP16, "full") is None
    shipped_times.cache_clear()


def test_damage_and_the_lack_of_a_gpu_are_told(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = tmp_path / "times.jsonl"
    records.write_text("{}\n")
    with pytest.raises(MachineError, match="line 1"):
        swept(plan_of(make(1)), records)
    monkeypatch.setattr("kernelblaster.devices.cuda.probe.detect_gpu", lambda: None)
    with pytest.raises(DeviceError):
        list(time_pytorch(plan_of(), records, lambda stage: None))


def test_rows_are_compiled_before_any_of_them_is_sampled(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelblaster.runs.pytorch_times._AT_ONCE", 1)
    Compilers.given.clear()
    plan = plan_of(*(make(number, f"problem{number}") for number in range(1, 6)))
    records = tmp_path / "times.jsonl"
    rows = time_pytorch(plan, records, lambda stage: None, gpu=INFO, workers=InTurn, compilers=Compilers)
    begun = [(next(rows).name, len(Compilers.given)) for _ in range(5)]
    assert begun == [("problem1", 1), ("problem2", 1), ("problem3", 2), ("problem4", 2), ("problem5", 3)]
    assert Compilers.given == [["problem1", "problem2"], ["problem3", "problem4"], ["problem5"]]


def test_what_is_timed_again(make: Make, tmp_path: Path) -> None:
    problems, records = [make(1), make(2, "huge"), make(3)], tmp_path / "times.jsonl"
    plan = plan_of(*problems)
    rows = swept(plan, records)
    late = next(row for row in rows if row.problem == "level1/003")
    hidden = late.times[TorchMode.EAGER].model_copy(update={"exposed": 5})
    append_line(records, late.model_copy(update={"times": {TorchMode.EAGER: hidden}}).model_dump_json().encode())
    for again, timed in (
        (None, []),
        (TimesAgain.FAILED, ["level1/002"]),
        (TimesAgain.EXPOSED, ["level1/003"]),
        (TimesAgain.ALL, ["level1/001", "level1/002", "level1/003"]),
    ):
        before = len(records.read_text().splitlines())
        swept(replace(plan, again=again), records)
        lines = [PytorchTimes.model_validate_json(line) for line in records.read_text().splitlines()[before:]]
        assert sorted(line.problem for line in lines) == timed, again
        assert all({*line.times, *line.failures} == set(MODES) for line in lines), "all modes in one sitting"


def test_the_best_mode_is_the_gpus_and_not_the_hosts(make: Make) -> None:
    row = row_of(TimesItem(make(1), Precision.FP16, "full", MODES, "d", 0.1))
    time_of = row.times[TorchMode.EAGER]
    waited = time_of.model_copy(update={"us": 5.0, "exposed": 21})
    assert waited.host_bound
    assert not time_of.model_copy(update={"exposed": 20}).host_bound
    mixed = row.model_copy(update={"times": {TorchMode.EAGER: waited, TorchMode.COMPILE: time_of}})
    assert mixed.best == (TorchMode.COMPILE, time_of)
    alone = row.model_copy(update={"times": {TorchMode.EAGER: waited}})
    assert alone.best == (TorchMode.EAGER, waited)
