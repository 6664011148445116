"""Contended additions of 16-bit floats, which a GPU tries again until they have won."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulator_support import TIMEOUT_S, needs_tools

import ptxemu

pytestmark = [pytest.mark.nvcc, needs_tools]
SOURCE = Path(__file__).with_name("programs") / "half_sums.cu"


def test_lanes_at_one_word_are_counted_and_timed_as_often_as_they_try() -> None:
    result = ptxemu.run(SOURCE, timeout_s=TIMEOUT_S)
    assert result.exit_code == 0
    contended, own = result.launches
    # `docs/results/ptxemu_small_launches_h200.json` has the same launch on an H200.
    assert contended.metrics["smsp__inst_executed.sum"] == pytest.approx(252_582, rel=0.1)
    assert contended.metrics["gpu__time_duration.sum"] == pytest.approx(938e3, rel=0.1)
    assert own.metrics["smsp__inst_executed.sum"] == pytest.approx(64 * 29, rel=0.1)
    assert own.metrics["gpu__time_duration.sum"] < 5e3
