"""Planted kernels, judged once per session on the emulated device, two at a time."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tests" / "runs"), str(Path(__file__).parent)]


@pytest.fixture(scope="session")
def verdicts() -> dict[str, object]:
    """What became of the chosen kernels, by name."""
    from planted_sample import chosen
    from trust import judge_all

    from kernelblaster.devices.emulated.device import EmulatedDevice

    return {row.name: row for row in judge_all(EmulatedDevice.create("h200"), chosen(), workers=2)}
