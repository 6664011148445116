"""One emulated device and one store of inputs for all planted kernels."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelblaster.evaluation.integrity.candidate_rules import CandidateRules

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tests" / "runs"), str(Path(__file__).parent)]


@pytest.fixture(scope="session")
def court() -> Iterator[object]:
    """Judges planted kernels on the emulated device."""
    from court import Court

    from kernelblaster.devices.emulated.device import EmulatedDevice
    from kernelblaster.evaluation.correctness.input_store import InputStore

    with InputStore() as inputs:
        yield Court(EmulatedDevice.create("h200", policy=CandidateRules()), inputs)
