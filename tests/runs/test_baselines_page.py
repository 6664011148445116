"""The page of baselines shows every problem, what is known of it, and how far a time may be believed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kernelblaster import load_problem
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.evaluation.timing.pytorch_times import ModeTime, PytorchTimes, read_times
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.paths import data_dir
from kernelblaster.problems.problem import Precision
from kernelblaster.runs.check_records import CheckRecord

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import baselines_page
from baselines_page import page, refresh

GPU = "NVIDIA H200"
RELU, LEAKY = (load_problem(f"level1/{number}") for number in (19, 20))


def time_of(us: float, exposed: int = 0, *, graph: bool = False) -> ModeTime:
    return ModeTime(
        us=us, low_us=us, high_us=us, samples=40, wall_us=us, wall_low_us=us, wall_high_us=us, launch_us=5.0,
        exposed=exposed, graph=graph,
    )  # fmt: skip


def times(**modes: ModeTime) -> PytorchTimes:
    return PytorchTimes(
        problem=str(RELU.id), name=RELU.name, precision=Precision.FP16, workload="full", digest="", gpu=GPU, driver="1",
        torch="2", settings=None, cover_us=1.0, conditions=None, floor_us=1500.0, attainable_us=1600.0,
        times={TorchMode(mode.replace("_", "-")): time for mode, time in modes.items()}, seconds=1.0, at=0.0,
    )  # fmt: skip


def start(us: float) -> CheckRecord:
    return CheckRecord(
        problem=str(RELU.id), name=RELU.name, precision=Precision.FP16, workload="full", device=GPU,
        device_kind=DeviceKind.CUDA, digest="", verdict="correct", median_us=us, low_us=us, high_us=us, seconds=1.0,
        at=0.0,
    )  # fmt: skip


def test_all_problems_have_bounds_and_what_was_timed_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    found = times(eager=time_of(3200.0), compile=time_of(2000.0, 21), reduce_overhead=time_of(4000.0, 5))
    tuned = times(eager=time_of(3200.0, graph=True))
    for row, eager in ((found, "3,200 50%"), (tuned, "3,200 50% (g)")):
        monkeypatch.setattr(baselines_page, "known_times", lambda problem, size, row=row: [row] * (problem == RELU))
        monkeypatch.setattr(baselines_page, "known_starts", lambda problem, size: [start(6400.0)] * (problem == RELU))
        lines = list(page([RELU, LEAKY], ["full"]))
        assert sum(line.startswith("## ") for line in lines) == 1
        (relu,) = [line for line in lines if line.startswith("| 1/19")]
        assert relu.startswith(f"| 1/19 ReLU | 1,500 | 1,600 | 6,400 25% | {eager} |")
        (leaky,) = [line for line in lines if line.startswith("| 1/20")]
        cells = [cell.strip() for cell in leaky.strip("|").split("|")]
        assert set(cells[3:]) == {"-"}
        floor, attainable = (float(cell.replace(",", "")) for cell in cells[1:3])
        assert 1300 < floor < attainable < 1700


def test_a_time_that_is_the_hosts_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    row = times(eager=time_of(3200.0), compile=time_of(2000.0, 21), reduce_overhead=time_of(4000.0, 5))
    monkeypatch.setattr(baselines_page, "known_times", lambda problem, size: [row])
    monkeypatch.setattr(baselines_page, "known_starts", lambda problem, size: [])
    told = "\n".join(page([RELU], ["full"]))
    assert "| 3,200 50% | 2,000 80% (h) | 4,000 40% (e) |" in told


def test_bounds_of_records_are_computed_anew_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "starts.jsonl"
    elsewhere = start(6400.0).model_copy(update={"device": "Some GPU"})
    path.write_text("".join(f"{record.model_dump_json()}\n" for record in (start(6400.0), elsewhere)))
    assert refresh(path, CheckRecord, {str(RELU.id): RELU}) == 1
    here, there = (CheckRecord.model_validate_json(line) for line in path.read_text().splitlines())
    assert there == elsewhere
    assert here.floor_us is not None
    assert here.attainable_us is not None
    assert 1300 < here.floor_us < here.attainable_us < 1700
    assert here.model_copy(update={"floor_us": None, "attainable_us": None}) == start(6400.0)
    assert refresh(path, CheckRecord, {str(RELU.id): RELU}) == 0


@pytest.mark.parametrize("precision", ["fp16", "fp32"])
def test_of_what_was_chosen_twice_the_faster_is_listed(precision: str) -> None:
    folder = data_dir() / "baselines" / "h200"
    listed = read_times([folder / f"{precision}.jsonl"])
    mode = TorchMode.MAX_AUTOTUNE
    slower = read_times([folder / "choices" / f"{precision}.jsonl"])
    assert slower
    for key, row in slower.items():
        assert listed[key].digest == row.digest
        assert listed[key].times[mode].us <= row.times[mode].us
