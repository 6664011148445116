"""The walk of docs/training.md by the command line: a tiny model learns from the emulated judge, stage by stage."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs trl: the extra train")

from cli_support import Done

from kernelblaster.errors import ExitCode

Invoke = Callable[..., Done]


def rewards(directory: Path, stage: str) -> list[float]:
    lines = (directory / stage / "rollouts.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    return [json.loads(line)["reward"] for line in lines]


@pytest.mark.nvcc
@pytest.mark.usefixtures("nvcc")
@pytest.mark.timeout(600)
def test_a_tiny_model_learns_in_both_stages(invoke: Invoke, clean: Path) -> None:
    directory, few = clean / "my", ["--set", "train.samples=8", "--set", "train.checkpoint_steps=20"]

    def train(command: str, *given: object) -> Any:
        done = invoke("train", command, directory, "--config", directory / "tiny.toml", "--json", *given)
        assert done.code == ExitCode.OK, done.err
        return json.loads(done.out)

    assert invoke("train", "tiny", directory).code == ExitCode.OK
    assert train("data", "--template", "--problems", "L1_23,L1_91")["prompts"]["prompts-midend.jsonl"] == 2
    assert train("sft", "--steps", "40", *few)["updates"] == 40
    for stage in ("frontend", "midend"):
        record = train(stage, "--steps", "40", *few)
        assert record["begins_with"] == "sft"
        assert {"generating", "judging", "updating", "saving"} <= record["phases"].keys()
        found = rewards(directory, stage)
        assert statistics.fmean(found[-60:]) > statistics.fmean(found[:60]) + 0.1
    train("eval", "--weights", "sft", "--stage", "midend", *few)
    held_out = train("eval", "--weights", "midend", "--stage", "midend", "--against", "sft", *few)
    assert held_out["differences"]["log_speedup"]["value"] > 0
    assert (directory / "report.html").is_file()


def test_template_problems_are_named_and_need_a_size(invoke: Invoke, clean: Path) -> None:
    data = ("train", "data", clean / "my", "--template")
    without, unknown = invoke(*data), invoke(*data, "--size=small", "--problems=L1_1")
    assert without.code == unknown.code == ExitCode.USAGE
    assert "--size" in without.err
    assert "L1_23" in unknown.err
