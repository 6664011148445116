"""The command line of a training, killed as the kernel's out-of-memory killer does it."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs trl: the extra train")

import torch
from safetensors.torch import load_file

from kernelblaster import RunConfig, make_template_data, write_tiny_model
from kernelblaster.devices.build.toolchain import Toolchain

STEPS = 12
SETTINGS = ("--steps", STEPS, "--set", "train.completion_tokens=16", "--set", "train.groups=1")
Moment = Callable[[Path], bool]


def started(directory: Path, command: str, *given: object) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-m", "kernelblaster", "train", command, directory, *given]
    return subprocess.Popen(list(map(str, arguments)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(directory: Path, command: str, *given: object) -> None:
    process = started(directory, command, *given)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err


def prepared(directory: Path) -> tuple[object, ...]:
    """A tiny model and its problems; the settings of stage `frontend`. It names no kernel yet: nothing is judged."""
    settings = write_tiny_model(directory)
    make_template_data(directory, RunConfig(device="emulated", size="small"), problems=["L1_23"])
    return ("--config", settings, *SETTINGS, "--set", "train.checkpoint_steps=2")


def has_written(directory: Path) -> bool:
    """Completions of the first step are there, and hardly more."""
    path = directory / "frontend" / "generations.jsonl"
    return path.is_file() and bool(path.read_bytes())


def has_saved(directory: Path) -> bool:
    """A checkpoint is whole."""
    return any((directory / "frontend").glob("checkpoint-*/complete"))


def killed(directory: Path, settings: tuple[object, ...], moment: Moment) -> bool:
    """Whether the stage was killed at a moment; it may have ended before."""
    process = started(directory, "frontend", *settings)
    while process.poll() is None and not moment(directory):
        time.sleep(0.005)
    process.kill()
    _, err = process.communicate(timeout=60)
    assert process.returncode in (0, -9), err
    return process.returncode == -9


def replies(directory: Path) -> list[dict[str, object]]:
    """What was written and what it was worth, without times."""
    lines = (directory / "frontend" / "rollouts.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    kept = ("step", "index", "problem", "completion", "verdict", "reward")
    return [{name: row[name] for name in kept} for row in map(json.loads, lines)]


def ends_as_one_that_was_not(whole: Path, disturbed: Path) -> None:
    assert len(replies(whole)) == STEPS * 4
    assert replies(disturbed) == replies(whole)
    one, other = (load_file(root / "frontend" / "adapter" / "adapter_model.safetensors") for root in (whole, disturbed))
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.nvcc
@pytest.mark.timeout(600)
def test_a_stage_that_is_killed_while_it_judges_and_after_a_checkpoint(nvcc: Toolchain, tmp_path: Path) -> None:
    whole, disturbed = tmp_path / "whole", tmp_path / "disturbed"
    settings = prepared(whole)
    finished(whole, "frontend", *settings)
    disturbed.mkdir()
    for name in ("model", "data"):
        (disturbed / name).symlink_to(whole / name)
    assert killed(disturbed, settings, has_written)
    assert killed(disturbed, settings, has_saved)
    finished(disturbed, "frontend", *settings)
    ends_as_one_that_was_not(whole, disturbed)


@pytest.mark.slow
@pytest.mark.nvcc
@pytest.mark.timeout(900)
def test_a_stage_that_is_killed_at_any_moment(nvcc: Toolchain, tmp_path: Path) -> None:
    whole, disturbed = tmp_path / "whole", tmp_path / "disturbed"
    settings = prepared(whole)
    finished(whole, "frontend", *settings)
    prepared(disturbed)
    moments, kills = random.Random(11), 0
    while kills < 6:
        until = time.monotonic() + moments.uniform(4.0, 9.0)
        if not killed(disturbed, settings, lambda directory, until=until: time.monotonic() > until):
            break
        kills += 1
    assert kills > 0
    finished(disturbed, "frontend", *settings)
    ends_as_one_that_was_not(whole, disturbed)
