from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knowledge_samples import facts, profile, timed

from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import ProfileSource, RuleResult, SpeedupScope
from kernelblaster.knowledge.derived import NSIGHT, Derived, hottest_kernel, observed, without_rules


def test_ratios_are_computed_where_their_parts_are_known():
    seen = observed(
        profile(
            {
                Metric.GLOBAL_LOAD_SECTORS: 3200.0,
                Metric.GLOBAL_LOAD_REQUESTS: 100.0,
                Metric.SHARED_WAVEFRONTS: 400.0,
                Metric.SHARED_LOAD_CONFLICTS: 90.0,
                Metric.SHARED_STORE_CONFLICTS: 10.0,
                Metric.GRID_SIZE: 66.0,
                Metric.WAVES: 2.25,
            }
        ),
        facts(),
        timed(headroom=2.0),
    )
    assert seen[Derived.LOAD_SECTORS_PER_REQUEST] == 32
    assert seen[Derived.BANK_CONFLICT_SHARE] == 25
    assert seen[Derived.BLOCKS_PER_SM] == 0.5
    assert seen[Derived.TAIL_IDLE] == pytest.approx(25)
    assert seen[Derived.HEADROOM] == 2


def test_estimates_of_nsights_rules_are_values_unless_they_are_left_out():
    def rule(percent, scope):
        return RuleResult(rule="UncoalescedGlobalAccess", text="t", percent=percent, scope=scope)

    seen = profile({Metric.WAVES: 2.0})
    seen.kernels[0].rules = [
        rule(20.0, SpeedupScope.GLOBAL), rule(60.0, SpeedupScope.GLOBAL), rule(90.0, SpeedupScope.LOCAL),
        rule(None, None),
    ]  # fmt: skip
    name = f"{NSIGHT}UncoalescedGlobalAccess"
    assert observed(seen, facts(), None)[name] == 60
    assert name not in observed(without_rules(seen), facts(), None)


def test_kernel_without_stores_does_not_waste_their_sectors():
    """Nsight Compute gives 0 % for a kernel that stores nothing."""
    seen = observed(profile({Metric.STORE_SECTOR_USE: 0.0, Metric.LOAD_SECTOR_USE: 25.0}), facts(), None)
    assert Metric.STORE_SECTOR_USE not in seen
    assert seen[Metric.LOAD_SECTOR_USE] == 25


@given(st.sets(st.sampled_from(list(Metric))))
def test_nothing_is_invented(present):
    """With every known metric 0 no ratio has a denominator, and what is unknown stays absent."""
    seen = observed(profile(dict.fromkeys(present, 0.0)), facts(), None)
    known = present - {Metric.LOAD_SECTOR_USE, Metric.STORE_SECTOR_USE}
    assert {name for name in seen if not name.startswith("derived.")} == {str(metric) for metric in known}
    ratios = {Derived.LOAD_SECTORS_PER_REQUEST, Derived.LOCAL_SHARE, Derived.L2_REUSE, Derived.BANK_CONFLICT_SHARE}
    assert not ratios & seen.keys()
    assert Derived.HEADROOM not in seen
    assert Derived.OUTSIDE_KERNELS_US not in seen


def test_a_number_that_is_none_is_unknown():
    seen = observed(
        profile({Metric.DRAM_THROUGHPUT: math.nan, Metric.WAVES: math.inf}), facts(), timed(headroom=math.nan)
    )
    assert Metric.DRAM_THROUGHPUT not in seen
    assert Metric.WAVES not in seen
    assert Derived.HEADROOM not in seen


def test_the_hottest_kernel_is_diagnosed():
    call = profile(
        {Metric.DURATION: 1e3, Metric.DRAM_THROUGHPUT: 90.0}, {Metric.DURATION: 9e3, Metric.DRAM_THROUGHPUT: 10.0}
    )
    seen = observed(call, facts(), timed(20.0))
    assert seen[Metric.DRAM_THROUGHPUT] == 10
    assert seen[Derived.HOT_KERNEL_SHARE] == pytest.approx(0.9)
    assert seen[Derived.LAUNCHES] == 2
    assert seen[Derived.OUTSIDE_KERNELS_US] == pytest.approx(10)
    assert seen[Derived.OUTSIDE_KERNELS_SHARE] == pytest.approx(0.5)


def test_without_durations_nobody_is_hottest():
    assert hottest_kernel(profile({Metric.WAVES: 1.0}, {Metric.WAVES: 2.0})) is None


def test_registers_limit_only_when_they_are_the_least():
    limits = {Metric.LIMIT_BLOCKS: 32.0, Metric.LIMIT_WARPS: 8.0, Metric.LIMIT_SHARED: 20.0}
    assert observed(profile(limits | {Metric.LIMIT_REGISTERS: 2.0}), facts(), None)[Derived.REGISTER_LIMITED] == 4
    assert observed(profile(limits | {Metric.LIMIT_REGISTERS: 16.0}), facts(), None)[Derived.REGISTER_LIMITED] == 0.5
    assert Derived.REGISTER_LIMITED not in observed(profile(limits), facts(), None)


def test_a_missing_optional_pipe_does_not_hide_the_others():
    pipes = {Metric.PIPE_FMA: 10.0, Metric.PIPE_ALU: 20.0, Metric.PIPE_XU: 5.0, Metric.PIPE_TENSOR: 0.0}
    assert observed(profile(pipes), facts(), None)[Derived.PEAK_MATH_PIPE] == 20
    assert observed(profile(pipes | {Metric.PIPE_FP64: 60.0}), facts(), None)[Derived.PEAK_MATH_PIPE] == 60


def test_events_count_no_launches():
    seen = observed(profile({Metric.DURATION: 1e3}, source=ProfileSource.EVENTS), facts(), timed())
    assert Derived.LAUNCHES not in seen
    assert Derived.BLOCKS_PER_SM not in seen
