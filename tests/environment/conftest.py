"""Shared: the shipped problems, loaded once, and sessions on a judge that is not real."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fake_judge import FakeJudge

from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.episode import EnvironmentSettings, KernelEnvironments, KernelEpisodes
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import Dataset


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    return Catalogue(Dataset(data_dir() / "kernelbench-cuda").problems())


@pytest.fixture
def judge() -> FakeJudge:
    return FakeJudge()


@pytest.fixture
def session(catalogue: Catalogue, judge: FakeJudge) -> Callable[..., KernelEpisodes]:
    """Makes sessions that share one judge."""
    shared = SharedJudge(judge)
    return lambda **settings: KernelEnvironments(catalogue, shared, EnvironmentSettings(**settings)).session()
