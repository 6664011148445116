"""Waits for other blocks at a word of memory: how often a warp looks here says nothing of a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulator_support import TIMEOUT_S, needs_tools

import ptxemu

pytestmark = [pytest.mark.nvcc, needs_tools]
SOURCE = Path(__file__).with_name("programs") / "polling.cu"
HALVES = Path(__file__).with_name("programs") / "half_pairs.cu"


def test_a_wait_counts_as_one_look_and_other_volatile_loads_as_they_are() -> None:
    result = ptxemu.run(SOURCE, timeout_s=TIMEOUT_S)
    assert result.exit_code == 0
    (launch,) = result.launches
    assert launch.metrics["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] == 1 + 64


def test_sums_of_pairs_of_halves_are_one_instruction_each() -> None:
    """`docs/results/ptxemu_small_launches_h200.json` has 21 warp instructions of such a warp on an H200."""
    result = ptxemu.run(HALVES, timeout_s=TIMEOUT_S)
    assert result.exit_code == 0
    (launch,) = result.launches
    assert launch.metrics["smsp__inst_executed.sum"] == 21 * 8
