"""The page of trainings: a line for each, and never rewards of different origin on one."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelblaster.config.training import TrainConfig
from kernelblaster.errors import UsageError
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.page import curve_of, write_page
from kernelblaster.training.phases import PhaseCost
from kernelblaster.training.rollouts import Rollout, RolloutHeader, RolloutStore
from kernelblaster.training.stage_records import StageRecord, write_record
from kernelblaster.training.stages import Stage


def trained(root: Path, *rewards: float, modelled: bool = False) -> TrainingLayout:
    """A training with a completion per step."""
    layout = TrainingLayout(root)
    conditions = {"device_name": "H200", "precision": "fp16", "workload": "small"}
    header = RolloutHeader(
        stage="frontend", conditions=conditions, modelled=modelled, reward="graded", baseline="start"
    )
    layout.stage(Stage.FRONTEND).mkdir(parents=True)
    store = RolloutStore(layout.stage(Stage.FRONTEND), header)
    for step, reward in enumerate(rewards):
        store.keep(
            Rollout(
                step=step, index=0, group=0, problem="level1/023", prompt="p", completion="<b>", tokens=1,
                truncated=False, verdict="correct", reward=reward, source_sha256="a",
            )
        )  # fmt: skip
    return layout


def test_a_page_has_a_line_for_each_training(tmp_path: Path) -> None:
    seeds = [trained(tmp_path / str(seed), 0.2, 0.4 + seed) for seed in range(3)]
    page = tmp_path / "page.html"
    assert write_page(seeds, page)
    one = page.read_text().partition("</svg>")[0]
    assert one.count("<polyline") == 3
    assert "<b>" not in page.read_text()
    assert not write_page([TrainingLayout(tmp_path / "none")], page)


def test_a_page_tells_what_phases_took(tmp_path: Path) -> None:
    layouts = [trained(tmp_path / str(seed), 0.5) for seed in range(2)]
    for layout, seconds in zip(layouts, (1.5, 2.5), strict=True):
        record = StageRecord(
            stage="frontend", updates=1, config=TrainConfig(), model_sha256="", plan={}, conditions={}, versions={},
            data_sha256="", begins_with="", rows=1, left_out=0,
            phases={"judging": PhaseCost(seconds=[seconds], peak_gib=10 * seconds)},
        )  # fmt: skip
        write_record(layout.stage(Stage.FRONTEND), record)
    page = tmp_path / "page.html"
    assert write_page(layouts, page)
    row = page.read_text().partition("<td>judging</td>")[2].partition("</tr>")[0]
    assert [cell.partition("<")[0] for cell in row.split("<td>")[1:]] == ["2", "2", "4", "25.00"]


def test_measured_and_modelled_rewards_never_share_a_page(tmp_path: Path) -> None:
    layouts = [trained(tmp_path / "measured", 0.2), trained(tmp_path / "modelled", 0.2, modelled=True)]
    with pytest.raises(UsageError, match="modelled"):
        write_page(layouts, tmp_path / "page.html")


def test_lines_share_their_scale() -> None:
    curve = curve_of("reward", [{0: 0.0, 10: 2.0}, {0: None, 5: 1.0}])
    assert curve is not None
    assert (curve.low, curve.high, curve.last) == (0.0, 2.0, (2.0, 1.0))
    assert [line.split()[-1] for line in curve.lines] == ["480.0,0.0", "240.0,60.0"]
    assert curve_of("reward", [{0: None}]) is None
