"""`scripts/setup.sh` with a stand-in for Python that installs nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = """#!/bin/bash
case "$*" in
    *"-m venv"*) mkdir -p "${!#}/bin"; cp "$0" "${!#}/bin/python" ;;
    *"-m pip"*)
        echo "$*" >> "$LOG.asked"
        echo begin >> "$LOG"
        while [ -e "$LOG.held" ]; do sleep 0.05; done
        [ ! -e "$LOG.fails" ] || exit 1
        echo end >> "$LOG" ;;
    *'import torch'*|*'version("torch")'*) exit 1 ;;
esac
"""

pytestmark = pytest.mark.skipif(shutil.which("flock") is None, reason="needs flock")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What the script needs of a clone."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "setup.sh", tmp_path / "scripts")
    (tmp_path / "constraints.txt").write_text("torch==2.6\nnumpy==2.0\n")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    return tmp_path


def set_up(clone: Path) -> subprocess.Popen[str]:
    settings = {"PYTHON": str(clone / "python"), "LOG": str(clone / "log"), "CUDA_HOME": "/nowhere"}
    command = ["bash", str(clone / "scripts" / "setup.sh")]
    return subprocess.Popen(command, env=os.environ | settings, stderr=subprocess.PIPE, text=True)


@pytest.mark.timeout(60)
def test_two_at_once_install_once(clone: Path) -> None:
    (clone / "log.held").touch()
    first = set_up(clone)
    while not (clone / "log").exists():
        time.sleep(0.02)
    second = set_up(clone)
    assert second.stderr.readline()  # it says that it waits
    (clone / "log.held").unlink()
    assert (first.wait(30), second.wait(30)) == (0, 0)
    assert (clone / "log").read_text().split() == ["begin", "end"]


def test_what_failed_or_was_done_is_known(clone: Path) -> None:
    (clone / "log.fails").touch()
    failed = set_up(clone)
    assert failed.wait(30) == 4
    (clone / "log.fails").unlink()
    assert set_up(clone).wait(30) == 0
    assert set_up(clone).wait(30) == 0
    assert (clone / "log").read_text().split() == ["begin", "begin", "end"]


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("asked", "installed"), [(None, {"dev"}), ("env,triton", {"dev", "env", "triton"})])
def test_tests_may_have_the_extras_that_they_need(clone: Path, asked: str | None, installed: set[str]) -> None:
    shutil.copy(ROOT / "scripts" / "test.sh", clone / "scripts")
    settings = {"PYTHON": str(clone / "python"), "LOG": str(clone / "log"), "CUDA_HOME": "/nowhere"}
    ours = ("KERNELBLASTER_EXTRAS", "KERNELBLASTER_PYTHON")
    environment = {name: value for name, value in os.environ.items() if name not in ours} | settings
    environment |= {} if asked is None else {"KERNELBLASTER_EXTRAS": asked}
    subprocess.run(["bash", str(clone / "scripts" / "test.sh"), str(clone)], env=environment, check=True, timeout=30)
    (found,) = re.findall(r"\[([\w,]+)\]", (clone / "log.asked").read_text())
    assert set(found.split(",")) - {"nvcc"} == installed
