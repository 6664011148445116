"""Where a run keeps its files, and what may be continued."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from runs_samples import FACTS

from kernelblaster.config import ModelConfig, RunConfig
from kernelblaster.devices.facts import Library
from kernelblaster.errors import UsageError
from kernelblaster.problems.problem import StandardWorkload
from kernelblaster.records.layout import ASIDE, RunLayout
from kernelblaster.records.run_record import RunRecord, read_record


def record(**changes: object) -> RunRecord:
    fields = {
        "run": "r", "started": "now", "config": RunConfig(), "workload": StandardWorkload.SMALL, "device": FACTS,
        "device_reason": "", "model_reason": "", "versions": {},
    }  # fmt: skip
    return RunRecord.model_validate(fields | changes)


@given(st.text(), st.text(), st.text())
@example("/home/me/problems", "timing_analysis", "model")
@example("../elsewhere", "timing_analysis", "model")
def test_names_never_leave_the_output_directory(dataset: str, experiment: str, model: str) -> None:
    config = RunConfig(out=Path("/out"), dataset=dataset, experiment=experiment, model=ModelConfig(name=model))
    layout = RunLayout.of(config)
    assert layout.run.parent == layout.experiment
    assert layout.experiment.parent.name == "fp16"
    assert layout.experiment.parent.parent.parent == Path("/out")
    assert ".." not in layout.run.parts


def test_the_usual_place() -> None:
    assert RunLayout.of(RunConfig()).experiment == Path("out/kernelbench-cuda/fp16/timing_analysis")


def test_only_results_under_the_same_conditions_are_continued() -> None:
    same = record(run="other", started="later")
    assert record().comparable(same)
    assert not record().comparable(record(workload=StandardWorkload.FULL))
    assert not record().comparable(record(config=RunConfig(libraries=(Library.CUBLAS,))))
    assert not record().comparable(record(device=FACTS.model_copy(update={"name": "another"})))
    assert not record().comparable(record(device=FACTS.model_copy(update={"kind": "cuda"})))


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    with pytest.raises(UsageError, match=r"run\.json"):
        read_record(path)
    path.write_text(record().model_dump_json()[:50])
    with pytest.raises(UsageError, match=r"run\.json"):
        read_record(path)
    path.write_text(record().model_dump_json())
    assert read_record(path) == record()


def test_searches_set_aside_are_not_listed(tmp_path: Path) -> None:
    layout = RunLayout(experiment=tmp_path, run=tmp_path / "model")
    for name in ("023_Softmax", f"023_Softmax{ASIDE}1", "001_Square"):
        (layout.run / "level1" / name).mkdir(parents=True)
    assert [path.name for path in layout.problems()] == ["001_Square", "023_Softmax"]


def test_records_of_earlier_versions_are_read() -> None:
    """They call a workload a size."""
    written = json.loads(record().model_dump_json())
    assert written["workload"] == "small"
    written["size"] = written.pop("workload")
    assert RunRecord.model_validate_json(json.dumps(written)) == record()
