"""The command line of a training, killed as the kernel's out-of-memory killer does it."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs trl: the extra train")

import torch
from safetensors.torch import load_file

from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.training.tiny_model import write_model

STEPS, KILLS = 4, 6


def started(arguments: list[object]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "kernelblaster", "train", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(arguments: list[object]) -> None:
    process = started(arguments)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err


def replies(directory: Path) -> list[dict[str, object]]:
    """What was written and what it was worth, without times."""
    lines = (directory / "frontend" / "rollouts.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    kept = ("step", "index", "problem", "completion", "verdict", "reward")
    return [{name: row[name] for name in kept} for row in map(json.loads, lines)]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_stage_that_is_killed_at_any_moment_ends_as_one_that_is_not(nvcc: Toolchain, tmp_path: Path) -> None:
    model = write_model(tmp_path / "model")
    settings = ["--model", model, "--steps", STEPS, "--device", "emulated", "--set", "train.completion_tokens=32"]
    directories = [tmp_path / name for name in ("whole", "killed")]
    for directory in directories:
        finished(["data", directory, "--form", "short", "--problems", "L1_23", "--device", "emulated"])
    finished(["frontend", directories[0], *settings])
    moments, kills = random.Random(11), 0
    while True:
        process = started(["frontend", directories[1], *settings])
        try:
            _, err = process.communicate(timeout=moments.uniform(4.0, 9.0) if kills < KILLS else 300)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            kills += 1
            continue
        assert process.returncode == 0, err
        break
    assert kills > 0
    whole, killed = map(replies, directories)
    assert len(whole) == STEPS * 4
    assert killed == whole
    one, other = (load_file(root / "frontend" / "adapter" / "adapter_model.safetensors") for root in directories)
    assert all(torch.equal(one[name], other[name]) for name in one)
