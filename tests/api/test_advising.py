"""What limits a kernel and what to try, from its counters."""

from __future__ import annotations

import pytest
from cli_support import make_dataset

from kernelblaster import DeviceFacts, DeviceKind, Evaluation, advise, load_problem
from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import KernelProfile, Profile, ProfileSource
from kernelblaster.evaluation.results import Verdict
from kernelblaster.problems.problem import Precision, StandardWorkload

FACTS = DeviceFacts(
    kind=DeviceKind.CUDA, name="H200", arch="sm_90", compile_arch="sm_90a", sm_count=132, clock_mhz=1980,
    memory_bytes=1 << 37, l2_bytes=60 << 20, shared_per_block=227 << 10, shared_per_sm=228 << 10,
    registers_per_sm=65536, max_warps_per_sm=64, peak_bandwidth=4.3e12, peak_flops={}, peak_source="test",
)  # fmt: skip


def evaluation(metrics: dict[Metric, float] | None) -> Evaluation:
    named = {str(metric): value for metric, value in (metrics or {}).items()}
    kernel = KernelProfile(name="k", grid=(1000, 1, 1), block=(256, 1, 1), metrics=named)
    profile = None if metrics is None else Profile(source=ProfileSource.NCU, kernels=[kernel], totals=named)
    return Evaluation(
        problem="level1/023", source_sha256="a", verdict=Verdict.CORRECT, reason="", device=DeviceKind.CUDA,
        device_name="H200", arch="sm_90", precision=Precision.FP16, workload=StandardWorkload.SMALL, profile=profile,
    )  # fmt: skip


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory):
    return load_problem("level1/23", dataset=make_dataset(tmp_path_factory.mktemp("dataset")))


def test_a_saturated_memory_system_is_named_with_techniques_for_it(problem) -> None:
    busy = {
        Metric.DURATION: 1e6, Metric.DRAM_THROUGHPUT: 95.0, Metric.MEMORY_THROUGHPUT: 95.0, Metric.SM_THROUGHPUT: 10.0,
        Metric.WAVES: 10.0, Metric.ACHIEVED_OCCUPANCY: 90.0, Metric.THEORETICAL_OCCUPANCY: 100.0,
    }  # fmt: skip
    advice = advise(evaluation(busy), problem, FACTS)
    assert advice is not None
    assert "bandwidth" in advice.bottleneck.state
    assert any("95" in line for line in advice.bottleneck.evidence)
    names = [one.technique for one in advice.suggestions]
    assert len(names) == len(set(names)) == 3
    assert all(one.expected_speedup > 0 for one in advice.suggestions)


def test_without_counters_nothing_is_said(problem) -> None:
    assert advise(evaluation(None), problem, FACTS) is None
