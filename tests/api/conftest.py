"""Fixtures of the library's tests: an empty directory without settings and without a GPU."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "cli"))

from cli_support import SETTINGS, make_dataset

from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.errors import KernelBlasterError


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty working directory, no settings, and no GPU."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kernelblaster.devices.cuda.probe.detect_gpu", lambda: None)
    return tmp_path


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of one small problem."""
    return make_dataset(tmp_path_factory.mktemp("dataset"))


@pytest.fixture(scope="session")
def nvcc() -> Toolchain:
    """The toolchain; tests that need it are skipped where there is none."""
    try:
        return Toolchain.find()
    except KernelBlasterError as error:
        pytest.skip(f"needs nvcc: {error.message}")
