"""Shared fixtures: one store of input sets for all tests, one torch thread."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def seeded() -> None:
    """The same random tensors in every run of the tests."""
    import torch

    torch.manual_seed(0)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """Input sets, drawn once."""
    import torch

    from kernelblaster.evaluation.correctness.input_store import InputStore

    torch.set_num_threads(1)
    with InputStore(tmp_path_factory.mktemp("inputs")) as opened:
        yield opened
