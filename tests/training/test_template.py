"""Problems for a tiny model: what is posed, stage by stage. Needs no training library."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelblaster import RunConfig, make_template_data
from kernelblaster.errors import UsageError
from kernelblaster.problems.tags import Split
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.rows import PromptRow, SftRow, read_rows
from kernelblaster.training.stages import Stage
from kernelblaster.training.template import LETTERS

CONFIG = RunConfig(device="emulated", size="small")


def test_stages_that_are_named_have_prompts_and_letters_in_the_warm_up(tmp_path: Path) -> None:
    made = make_template_data(tmp_path, CONFIG, stages=["midend", "backend"])
    layout = TrainingLayout(tmp_path)
    assert set(made.prompts) == {"prompts-midend.jsonl", "prompts-backend.jsonl", "sft.jsonl"}
    midend, backend = (read_rows(layout.prompts(stage), PromptRow) for stage in (Stage.MIDEND, Stage.BACKEND))
    assert [row.parent for row in backend] == [row.parent for row in midend]
    assert not {row.digest for row in backend} & {row.digest for row in midend}
    assert all(row.parent in row.sources.values() for row in backend)
    taught = read_rows(layout.data / "sft.jsonl", SftRow)
    for stage in (Stage.MIDEND, Stage.BACKEND):
        assert {row.completion[0].content for row in taught if row.stage == stage} == set(LETTERS)
    assert {row.split for row in taught} == {Split.TRAIN}


def test_a_stage_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'moon'"):
        make_template_data(tmp_path, CONFIG, stages=["moon"])
