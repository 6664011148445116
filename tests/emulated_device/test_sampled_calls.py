"""Calls that are counted from a sample of blocks: right, or counted whole, never wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sampled_kernels as kernels
from emulated_bench import TIMEOUT_S, Bench, needs_tools

from kernelblaster.devices.base import COUNTED, Build, Job, profile_once
from kernelblaster.devices.failures import RunFailure, RunFailureKind
from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import Profile

pytestmark = [pytest.mark.nvcc, needs_tools]
COUNTS = (Metric.INSTRUCTIONS, Metric.GLOBAL_LOAD_SECTORS, Metric.GLOBAL_STORE_SECTORS, Metric.DRAM_READ)
FEW = 100
"""Warp instructions: two SMs are executed."""


def slow(*cases: str) -> list[object]:
    """Cases that wait for --all."""
    return [pytest.param(case, marks=pytest.mark.slow) for case in cases]


def prepared(bench: Bench, source: str, n: int = 512) -> tuple[Build, Job]:
    values = np.random.default_rng(n).standard_normal((n, n)).astype(np.float32)
    return bench.build(source), bench.job(values)


def both(bench: Bench, source: str) -> tuple[Profile, Profile]:
    """The profile of every block, and that of a sample."""
    build, job = prepared(bench, source)
    whole = profile_once(bench.device, build, job, timeout_s=TIMEOUT_S)
    return whole, profile_once(bench.device, build, replace(job, instruction_budget=FEW), timeout_s=TIMEOUT_S)


def test_launches_that_hand_on_plain_values_are_sampled_and_say_so(bench: Bench) -> None:
    whole, sampled = both(bench, kernels.CHAIN)
    assert whole.executed_share == 1
    assert sampled.executed_share == pytest.approx(2 / 132, rel=0.1)
    for metric in COUNTS:
        assert sampled.totals[metric] == pytest.approx(whole.totals[metric], rel=0.02), metric


@pytest.mark.parametrize("name", ["TABLE", "LAST_BLOCK", *slow("STAGED_TABLE", "READ_BACK")])
def test_what_depends_on_blocks_that_were_left_out_is_counted_whole(bench: Bench, name: str) -> None:
    whole, sampled = both(bench, getattr(kernels, name))
    assert sampled.executed_share == 1
    assert sampled == whole


def test_what_can_be_counted_neither_in_part_nor_whole_runs_out_of_time_and_says_why(bench: Bench) -> None:
    build, job = prepared(bench, kernels.ENDLESS)
    with pytest.raises(RunFailure) as caught:
        profile_once(bench.device, build, replace(job, instruction_budget=FEW), timeout_s=2)
    assert caught.value.kind is RunFailureKind.TIMEOUT
    assert "every block" in caught.value.reason
    assert "gather" in caught.value.reason


def test_a_fault_of_a_sampled_block_is_the_kernels_own(bench: Bench) -> None:
    build, job = prepared(bench, kernels.CHAIN.replace("x[i];", "x[i + n];"))
    with pytest.raises(RunFailure, match="cudaErrorIllegalAddress"):
        profile_once(bench.device, build, replace(job, instruction_budget=FEW), timeout_s=TIMEOUT_S)


def test_sampled_sessions_start_no_process_and_have_no_outputs_to_offer(bench: Bench) -> None:
    build, job = prepared(bench, kernels.CHAIN)
    before = (bench.directory / "y").read_bytes()
    with bench.device.open(build, replace(job, instruction_budget=FEW), timeout_s=TIMEOUT_S) as session:
        (sample,) = session.time_calls([COUNTED])
    assert 0 < sample.executed_share < 1
    assert (bench.directory / "y").read_bytes() == before


@pytest.mark.parametrize("name", ["COUNTER_OF_EIGHT_BLOCKS", *slow("ONE_COUNTER", "COUNTER_PER_BLOCK")])
def test_crowded_atomics_are_as_crowded_in_a_sample(bench: Bench, name: str) -> None:
    build, job = prepared(bench, getattr(kernels, name))
    whole, sampled = (
        bench.device.counted(build, chosen, timeout_s=TIMEOUT_S).kernels[0].record.hottest_atomic_passes
        for chosen in (job, replace(job, instruction_budget=FEW))
    )
    assert sampled == pytest.approx(whole, rel=0.05)
