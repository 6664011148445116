"""What is told of recordings that answer: which they are, and what a search cannot compare with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelblaster.config import ModelConfig, ModelKind, RunConfig, SearchConfig, SearchPart
from kernelblaster.models.backends import RECORDED_EMULATED, SHIPPED_RECORDING
from kernelblaster.runs.choices import choose_model_config
from kernelblaster.runs.replays import replay_warnings

EMULATED, SHIPPED = (Path(name).name for name in (RECORDED_EMULATED, SHIPPED_RECORDING))


@pytest.mark.parametrize(
    ("problems", "told"),
    [
        (["level1/023"], {EMULATED}),
        (["level1/047"], {SHIPPED}),
        (["level1/023", "level1/047"], {EMULATED, SHIPPED}),
        ([], {EMULATED, SHIPPED}),
    ],
)
def test_the_shipped_recordings_that_answer_are_named(problems: list[str], told: set[str]) -> None:
    chosen = choose_model_config(ModelConfig(kind=ModelKind.RECORDED), problems)
    assert {name for name in (EMULATED, SHIPPED) if name in chosen.reason} == told
    assert chosen.config.recording is None


def test_a_recording_that_is_named_answers_alone(tmp_path: Path) -> None:
    own = tmp_path / "own.jsonl"
    own.touch()
    chosen = choose_model_config(ModelConfig(recording=own), ["level1/023"])
    assert chosen.reason.startswith("replays own.jsonl:")
    assert chosen.config.recording == own


def warned(kind: ModelKind, *ablate: SearchPart) -> list[str]:
    return replay_warnings(RunConfig(model=ModelConfig(kind=kind), search=SearchConfig(ablate=ablate)))


def test_parts_that_a_replay_does_without_are_told() -> None:
    without, prompts = warned(ModelKind.RECORDED, *SearchPart)
    assert SearchPart.HYPOTHESES in without
    assert SearchPart.HISTORY in prompts
    assert SearchPart.RETRIEVAL not in without + prompts
    assert warned(ModelKind.RECORDED, SearchPart.RETRIEVAL, SearchPart.SWEEP) == []
    assert warned(ModelKind.OPENAI_API, *SearchPart) == []
