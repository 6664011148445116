"""The metric table against what Nsight Compute really printed, and the totals of a call."""

from __future__ import annotations

import csv
from itertools import dropwhile
from pathlib import Path

import pytest

from kernelblaster.devices.metrics import Metric, Rollup, rollup_of
from kernelblaster.devices.profiles import KernelProfile, Profile, ProfileSource, totals

CAPTURED = Path(__file__).parents[1] / "fixtures" / "ncu" / "h200_probe.csv"
NOT_CAPTURED = {
    Metric.PIPE_FP16,
    Metric.BULK_READ,
    Metric.BULK_WRITE,
    Metric.SHARED_LOAD_WAVEFRONTS,
    Metric.SHARED_STORE_WAVEFRONTS,
    Metric.STALL_GMMA,
    Metric.STALL_MEMBAR,
    Metric.STALL_BRANCH,
    Metric.STALL_NO_INSTRUCTION,
}


def _captured() -> tuple[list[str], list[str], list[list[str]]]:
    """Names, units and rows of the captured page."""
    with CAPTURED.open(encoding="utf-8", newline="") as file:
        rows = list(dropwhile(lambda row: row[:1] != ["ID"], csv.reader(file)))
    return rows[0], rows[1], rows[2:]


def test_every_metric_is_one_that_nsight_printed() -> None:
    names, _, _ = _captured()
    assert {str(metric) for metric in set(Metric) - NOT_CAPTURED} <= set(names)


def test_percentages_carry_nsights_unit() -> None:
    names, units, _ = _captured()
    for metric in set(Metric) - NOT_CAPTURED:
        assert (metric.unit == "%") == (units[names.index(str(metric))] == "%"), metric


def test_metric_is_its_name() -> None:
    assert Metric.DURATION == "gpu__time_duration.sum"
    assert {"gpu__time_duration.sum": 1.0}[Metric.DURATION] == 1.0
    assert len({str(metric) for metric in Metric}) == len(Metric)


def kernel(**metrics: float) -> KernelProfile:
    known = {str(Metric[name.upper()]): value for name, value in metrics.items()}
    return KernelProfile(name="k", grid=(1, 1, 1), block=(1, 1, 1), metrics=known)


def test_totals_sum_counts_and_weight_rates_by_duration() -> None:
    found = totals(
        [
            kernel(duration=1000, dram_read=10, dram_throughput=20),
            kernel(duration=3000, dram_read=5, dram_throughput=60),
        ]
    )
    assert found == {Metric.DURATION: 4000, Metric.DRAM_READ: 15, Metric.DRAM_THROUGHPUT: 50}


def test_metric_that_one_kernel_lacks_is_absent() -> None:
    found = totals([kernel(duration=1, dram_read=1), kernel(duration=1)])
    assert Metric.DRAM_READ not in found


def test_means_of_several_kernels_need_every_duration() -> None:
    found = totals([kernel(duration=1, l1_hit_rate=10), kernel(l1_hit_rate=30)])
    assert found == {}
    assert totals([kernel(l1_hit_rate=10)]) == {Metric.L1_HIT_RATE: 10}


def test_no_kernels_have_no_totals() -> None:
    assert totals([]) == {}


@pytest.mark.parametrize(
    ("name", "rollup"),
    [
        ("sm__cycles_elapsed.max", Rollup.SUM),
        ("lts__t_bytes.sum", Rollup.SUM),
        ("sm__something.avg.pct_of_peak_sustained_active", Rollup.MEAN),
        ("lts__t_bytes.sum.per_second", Rollup.MEAN),
    ],
)
def test_rollup_by_table_or_suffix(name: str, rollup: Rollup) -> None:
    assert rollup_of(name) is rollup


def test_kernels_are_ordered_by_duration_with_unknown_ones_last() -> None:
    launched = [kernel(waves=1), kernel(duration=2, waves=2), kernel(duration=9, waves=3), kernel(duration=2, waves=4)]
    found = Profile(source=ProfileSource.NCU, kernels=launched, totals={}).longest_first()
    assert [one.metrics[Metric.WAVES] for one in found] == [3, 2, 4, 1]
