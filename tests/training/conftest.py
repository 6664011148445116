"""Shared: problems of the shipped data set, and a scripted judge behind the real store of evaluations."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "environment"))

from fake_judge import FakeJudge

from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.errors import KernelBlasterError
from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import Dataset
from kernelblaster.training.judging import StoredJudge


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    return Catalogue(Dataset(data_dir() / "kernelbench-cuda").problems())


@pytest.fixture
def judge() -> FakeJudge:
    return FakeJudge()


@pytest.fixture
def stored(catalogue: Catalogue, judge: FakeJudge, tmp_path: Path) -> Callable[[], StoredJudge]:
    """Makes judges of one training, as a start of the process does."""
    return lambda: StoredJudge(SharedJudge(judge), catalogue, tmp_path / "judged")


@pytest.fixture(scope="session")
def nvcc() -> Toolchain:
    """The toolchain; tests that need it are skipped where there is none."""
    try:
        return Toolchain.find()
    except KernelBlasterError as error:
        pytest.skip(f"needs nvcc: {error.message}")
