"""A sweep over the starts of problems: it goes on where it stopped, and judges again what has changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from budget_support import RELU_SLUG, reduced
from fake_device import FakeDevice, source

from kernelblaster.config import RunConfig
from kernelblaster.devices.registry import DEVICES, OpenedDevice
from kernelblaster.errors import MachineError
from kernelblaster.evaluation.judge_version import judge_version
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.runs.check_records import LOST, MEMORY_FULL, PROBLEM_FAULT, CheckAgain, CheckRecord, read_checks
from kernelblaster.runs.problem_checks import CheckPlan, check_problems

FEW_SETS = {"input_sets": 2}
CONFIG = RunConfig(device="scripted", evaluation={**FEW_SETS, "max_seconds_timing": 0.1})


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDevice]:
    monkeypatch.setattr("kernelblaster.evaluation.timing.stopwatch.SPIN_UP_S", 0.0)
    device = FakeDevice()
    device.in_company = True
    DEVICES.register("scripted", lambda request: OpenedDevice(device, "scripted"), "a device")
    yield device
    DEVICES.unregister("scripted")


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    return started(reduced(RELU_SLUG, tmp_path / "reduced", medium={"batch_size": 5, "dim": 259}), "honest")


def started(problem: Problem, kernel: str) -> Problem:
    """The problem with a scripted start; its harness is scripted as well."""
    problem.driver_path.write_text("")
    problem.init_path.write_text(source(kernel))
    return problem


def swept(plan: CheckPlan, records: Path, config: RunConfig = CONFIG) -> list[CheckRecord]:
    return list(check_problems(plan, config, records, lambda stage: None))


class Wild:
    """Times of two kinds, so that no number of samples narrows the interval of their median."""

    def __init__(self) -> None:
        self._calls = 0

    def normal(self, mean: float, spread: float) -> float:
        self._calls += 1
        return mean + (0.5 if self._calls % 2 else -0.5)


def test_outcomes_are_kept_and_only_what_has_changed_is_judged_again(problem: Problem, tmp_path: Path) -> None:
    plan = CheckPlan([problem], [Precision.FP32], ["small", "medium", "huge"])
    records = tmp_path / "checks" / "records.jsonl"
    first = swept(plan, records)
    assert [(one.workload, one.passed) for one in first] == [("small", True), ("medium", True)]
    assert swept(plan, records) == first
    (again,) = swept(replace(plan, again=CheckAgain.ALL, workloads=["medium"]), records)
    assert again.at > first[1].at
    (wrong,) = swept(replace(plan, problems=[started(problem, "scaled")], workloads=["small"]), records)
    assert wrong.verdict == "wrong_values"
    assert "2 times expected" in wrong.reason
    assert wrong.median_us is None
    assert {one.workload: one.passed for one in read_checks(records)} == {"small": False, "medium": True}


def test_a_sweep_stops_when_its_time_is_over_and_a_torn_line_is_cut(problem: Problem, tmp_path: Path) -> None:
    plan = CheckPlan([problem], [Precision.FP32], ["small"], minutes=0.0)
    assert swept(plan, tmp_path / "records.jsonl") == []
    records = tmp_path / "records.jsonl"
    records.write_bytes(b'{"problem": "level1')
    assert len(swept(replace(plan, minutes=None), records)) == len(read_checks(records)) == 1


def test_a_fault_of_the_problem_is_an_outcome(problem: Problem, tmp_path: Path) -> None:
    text = problem.reference_path.read_text()
    problem.reference_path.write_text(text.replace("return torch.relu(x)", "return torch.relu(y)"))
    (found,) = swept(CheckPlan([problem], [Precision.FP32], ["small"]), tmp_path / "records.jsonl")
    assert found.verdict == PROBLEM_FAULT
    assert "NameError" in found.reason
    assert found.hint, "what to do goes with it"


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").write_text("{}\n")
    with pytest.raises(MachineError, match="line 1"):
        read_checks(tmp_path / "records.jsonl")


def test_what_an_earlier_judge_refused_is_judged_again(
    problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = CheckPlan([started(problem, "scaled")], [Precision.FP32], ["small"])
    records = tmp_path / "records.jsonl"
    (refused,) = swept(wrong, records)
    assert swept(wrong, records) == [refused]
    assert refused.judge == judge_version()
    monkeypatch.setattr("kernelblaster.runs.problem_checks.judge_version", lambda: "another")
    (later,) = swept(wrong, records)
    assert later.at > refused.at
    assert later.judge == "another"
    assert swept(wrong, records) == [later]


@pytest.mark.parametrize(
    ("verdict", "judge", "again", "settled"),
    [
        ("correct", "now", None, True),
        ("correct", "earlier", None, True),
        ("correct", None, CheckAgain.REFUSED, True),
        ("correct", "now", CheckAgain.ALL, False),
        ("wrong_values", "now", None, True),
        ("wrong_values", "earlier", None, False),
        ("wrong_values", None, None, False),
        ("wrong_values", "now", CheckAgain.REFUSED, False),
        (PROBLEM_FAULT, "now", None, True),
        (MEMORY_FULL, "now", None, False),
        (LOST, "now", None, False),
    ],
)
def test_outcomes_that_stand(verdict: str, judge: str | None, again: CheckAgain | None, settled: bool) -> None:
    record = CheckRecord.model_construct(verdict=verdict, judge=judge)
    assert record.settled("now", again) is settled


def test_a_record_says_what_was_warned_of_and_what_took_time(problem: Problem, tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    (found,) = swept(CheckPlan([started(problem, "jitters")], [Precision.FP32], ["medium"]), records)
    assert found.passed
    assert any("differs" in warning for warning in found.warnings)
    assert {"inputs", "verify", "time"} <= set(found.stages)
    assert sum(found.stages.values()) <= found.seconds + 0.1 * len(found.stages)
    assert read_checks(records) == [found]

    earlier = found.model_dump_json(exclude={"judge", "stages", "warnings"})
    records.write_text(f"{earlier}\n")
    assert read_checks(records) == [found.model_copy(update={"judge": None, "stages": {}, "warnings": []})]


def test_starts_are_timed_for_as_long_as_the_plan_says(
    problem: Problem, tmp_path: Path, scripted: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripted, "noise", Wild())
    counts = []
    for seconds in (0.05, 0.8):
        scripted.perturbations.clear()
        plan = CheckPlan([problem], [Precision.FP32], ["medium"], seconds=seconds)
        (found,) = swept(plan, tmp_path / f"{seconds}.jsonl", RunConfig(device="scripted", evaluation=FEW_SETS))
        assert found.passed, found.reason
        counts.append(len(scripted.perturbations["honest"]))
    assert 0 < counts[0] < counts[1]
