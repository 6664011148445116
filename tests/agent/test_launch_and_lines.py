"""What prompts tell of the launch and of the lines at which warps wait."""

from __future__ import annotations

import math

import pytest
from agent_support import FACTS

from kernelblaster.agent.hot_lines import LINES_SHOWN, hot_lines
from kernelblaster.agent.launch import launch_summary
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import KernelProfile, Profile, ProfileSource, SourceLine
from kernelblaster.evaluation.results import Evaluation, Verdict
from kernelblaster.problems.problem import Precision, StandardWorkload

LIMITS = {Metric.LIMIT_WARPS: 8, Metric.LIMIT_REGISTERS: 2, Metric.LIMIT_SHARED: 2, Metric.LIMIT_BLOCKS: 32}


def evaluation(*kernels: KernelProfile, source: ProfileSource = ProfileSource.NCU) -> Evaluation:
    return Evaluation(
        problem="level1/023", source_sha256="a", verdict=Verdict.CORRECT, reason="", device=DeviceKind.CUDA,
        device_name="t", arch="sm_90", precision=Precision.FP16, workload=StandardWorkload.SMALL,
        profile=Profile(source=source, kernels=list(kernels), totals={}),
    )  # fmt: skip


def kernel(blocks: int = 400, metrics: dict[Metric, float] = LIMITS, **fields) -> KernelProfile:
    named = {str(metric): float(value) for metric, value in metrics.items()}
    return KernelProfile(**{"name": "k", "grid": (blocks, 1, 1), "block": (256, 1, 1), "metrics": named, **fields})


def told(*kernels: KernelProfile, **fields) -> str:
    return launch_summary(evaluation(*kernels, **fields), FACTS)


def test_blocks_per_sm_are_told_with_what_limits_them_and_what_would() -> None:
    line = told(kernel())
    assert "400 blocks of 256 threads, 2 per SM by registers, shared memory (by warp slots 8, block slots 32)" in line


@pytest.mark.parametrize("blocks", [265, 400, 528, 792, 1000])
def test_the_tail_is_what_the_last_wave_leaves_empty(blocks: int) -> None:
    slots = 2 * FACTS.sm_count
    waves = blocks / slots
    empty = 1 - blocks / (math.ceil(waves) * slots)
    assert f"{waves:.2f} waves on 132 SMs" in told(kernel(blocks))
    assert f"{empty:.0%} of all block slots stay empty" in told(kernel(blocks))


def test_waves_that_were_recorded_win_over_those_reckoned() -> None:
    assert "3.30 waves" in told(kernel(metrics={**LIMITS, Metric.WAVES: 3.3}))


def test_small_grids_leave_sms_without_work() -> None:
    assert "128 of 132 SMs get no block" in told(kernel(4))
    assert "fills 76% of the block slots" in told(kernel(200))


def test_what_was_not_recorded_is_left_out() -> None:
    assert told(kernel(metrics={})) == "Launch: 400 blocks of 256 threads; 3.0 blocks for each of 132 SMs."
    assert told() == ""
    assert told(kernel(), source=ProfileSource.EVENTS) == ""


def test_the_longest_kernel_is_told_and_the_line_stays_short() -> None:
    line = told(kernel(7), kernel(5000, metrics={**LIMITS, Metric.DURATION: 9.0}))
    assert "5000 blocks" in line
    assert len(line) < 260


def test_lines_come_with_their_text_the_hottest_first() -> None:
    source = "int a;\n  x   = p[i];\n" + "y" * 200 + "\n"
    lines = [
        SourceLine(line=1, waiting=0.1), SourceLine(line=2, waiting=0.5, reason="global memory"),
        SourceLine(line=3, waiting=0.3), SourceLine(line=9, waiting=0.9), SourceLine(line=1, waiting=0.01),
    ]  # fmt: skip
    found = hot_lines(evaluation(kernel(lines=lines)), source)
    assert found[0] == "50% (global memory): x = p[i];"
    assert found[1].startswith("30%: yyy")
    assert len(found[1]) < 100
    assert found[2] == "10%: int a;"
    assert len(found) == 3


def test_few_lines_are_shown() -> None:
    lines = [SourceLine(line=number, waiting=0.05) for number in range(1, 20)]
    assert len(hot_lines(evaluation(kernel(lines=lines)), "x\n" * 20)) == LINES_SHOWN
    assert hot_lines(evaluation(), "x") == []
