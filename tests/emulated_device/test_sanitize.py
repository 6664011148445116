"""Candidates under the checks of the emulator, reported as compute-sanitizer would."""

from __future__ import annotations

import emulated_kernels as kernels
import numpy as np
import pytest
from emulated_bench import TIMEOUT_S, Bench, needs_tools

from kernelblaster.devices.failures import RunFailure

pytestmark = [pytest.mark.nvcc, needs_tools]

RACE = """
__global__ void reverse(const float* x, float* y, int n) {
    extern __shared__ float row[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) row[i] = x[blockIdx.x * n + i];
    SYNC
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[blockIdx.x * n + i] = row[n - 1 - i];
}
void launch_gpu_implementation(void* output, void* x, int64_t n) {
    reverse<<<n, 128, n * 4>>>((const float*)x, (float*)output, n);
}
"""
PARTLY_LOADED = """
__global__ void copy(const float* x, float* y, int n) {
    __shared__ float tile[64];
    if (threadIdx.x < 48) tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    float value = tile[threadIdx.x];
    if (threadIdx.x < 48) y[threadIdx.x] = value;
}
void launch_gpu_implementation(void* output, void* x, int64_t n) { copy<<<1, 64>>>((float*)x, (float*)output, n); }
"""


def test_candidates_are_sanitized(bench: Bench) -> None:
    job = bench.job(np.zeros((64, 64), np.float32))
    (finding, *_) = bench.device.sanitize(bench.build(RACE.replace("SYNC", "")), job, timeout_s=TIMEOUT_S)
    assert finding.tool == "racecheck"
    assert finding.location == "candidate.cu:6"
    assert "reverse" in finding.message
    fixed = bench.build(RACE.replace("SYNC", "__syncthreads();"))
    assert bench.device.sanitize(fixed, job, timeout_s=TIMEOUT_S) == []


def test_shared_memory_that_is_read_in_vain_is_no_finding_of_a_candidate(bench: Bench) -> None:
    job = bench.job(np.zeros((64, 64), np.float32))
    assert bench.device.sanitize(bench.build(PARTLY_LOADED), job, timeout_s=TIMEOUT_S) == []


def test_failure_that_no_check_explains_is_raised(bench: Bench) -> None:
    trap = bench.build(kernels.COPY.replace("long i =", "if (n) __trap(); long i ="))
    with pytest.raises(RunFailure, match="cudaErrorLaunchFailure"):
        bench.device.sanitize(trap, bench.job(np.zeros((64, 64), np.float32)), timeout_s=TIMEOUT_S)
