"""Times of starts that ship with the data are shown of the files they were measured on, and of nothing modelled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kernelblaster import known_starts, load_problem
from kernelblaster.cli.app import app
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.problems.problem import Precision
from kernelblaster.problems.start import read_start
from kernelblaster.runs import check_records
from kernelblaster.runs.check_records import CheckRecord, problem_digest, shipped_checks

RELU = load_problem("level1/19")
MEASURED = CheckRecord(
    problem=str(RELU.id),
    name=RELU.name,
    precision=Precision.FP16,
    workload="full",
    device="Some GPU",
    device_kind=DeviceKind.CUDA,
    digest=problem_digest(RELU, read_start(RELU)),
    verdict="correct",
    median_us=400.0,
    low_us=399.0,
    high_us=401.5,
    floor_us=90.0,
    attainable_us=100.0,
    modelled=False,
    seconds=1.0,
    at=0.0,
)
LEFT_OUT = [
    {"digest": "0" * 16, "precision": Precision.FP32},
    {"modelled": True, "device": "Some emulated GPU", "device_kind": DeviceKind.EMULATED},
    {"verdict": "wrong_values", "precision": Precision.BF16},
    {"workload": "small"},
]


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "baselines" / "some" / "starts"
    folder.mkdir(parents=True)
    rows = [MEASURED, *(MEASURED.model_copy(update=change) for change in LEFT_OUT)]
    (folder / "full.jsonl").write_text("".join(f"{row.model_dump_json()}\n" for row in rows))
    monkeypatch.setattr(check_records, "data_dir", lambda: tmp_path)
    shipped_checks.cache_clear()
    yield
    shipped_checks.cache_clear()


@pytest.mark.usefixtures("shipped")
def test_only_what_was_measured_on_these_files_at_this_size_is_known() -> None:
    assert known_starts("level1/19") == [MEASURED]
    assert [row.workload for row in known_starts("level1/19", size="small")] == ["small"]
    assert known_starts("level1/20") == []


@pytest.mark.usefixtures("shipped")
def test_the_attainable_time_that_a_record_lacks_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    told = [MEASURED.model_copy(update={"attainable_us": None, "device": gpu}) for gpu in ("NVIDIA H200", "Some GPU")]
    monkeypatch.setattr(check_records, "shipped_checks", lambda: told)
    known, unknown = known_starts("level1/19")
    assert known.attainable_us is not None
    assert known.attainable_us == pytest.approx(1495, rel=0.01), "what is read and written, at the copy rate"
    assert unknown.attainable_us is None


@pytest.mark.usefixtures("shipped")
def test_a_problem_is_shown_with_its_start_and_the_share_that_it_reaches() -> None:
    shown = CliRunner().invoke(app, ["problems", "show", "level1/19"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    line = next(line for line in shown.output.splitlines() if "init.cu" in line and "Some GPU" in line)
    assert "400.0 [399.0, 401.5]" in line
    assert line.rstrip().endswith("25%")
