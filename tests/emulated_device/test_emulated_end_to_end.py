"""Real kernels through the real nvcc and the emulator: outputs, faults, and which of two kernels is modelled faster."""

from __future__ import annotations

import emulated_kernels as kernels
import numpy as np
import pytest
from emulated_bench import TIMEOUT_S, Bench, needs_tools

from kernelblaster.devices.failures import BuildFailure, BuildFailureKind, RunFailure, RunFailureKind
from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import ProfileSource

pytestmark = [pytest.mark.nvcc, needs_tools]


def square_matrix(n: int) -> np.ndarray:
    return np.random.default_rng(n).standard_normal((n, n)).astype(np.float32)


def test_copy_is_computed_timed_and_profiled(bench: Bench) -> None:
    x = square_matrix(512)
    output, microseconds, profile = bench.evaluate(kernels.COPY, x)
    np.testing.assert_array_equal(output, x)
    assert profile.source is ProfileSource.EMULATED
    metrics = profile.kernels[0].metrics
    warps = x.size // 32
    assert metrics[Metric.GLOBAL_LOAD_REQUESTS] == warps
    assert metrics[Metric.GLOBAL_LOAD_SECTORS] == 4 * warps
    assert metrics[Metric.GLOBAL_STORE_SECTORS] == 4 * warps
    assert x.nbytes <= metrics[Metric.DRAM_READ] < x.nbytes + 4096  # a launch reads a little that no thread asks for
    assert metrics[Metric.DRAM_WRITE] < 1e3  # a megabyte stays in the L2
    assert metrics[Metric.GRID_SIZE] == x.size // 256
    assert metrics[Metric.THREADS_PER_INSTRUCTION] == 32
    assert profile.totals[Metric.DURATION] / 1000 < microseconds < 10


def test_call_is_deterministic(bench: Bench) -> None:
    x = square_matrix(256)
    first = bench.evaluate(kernels.COPY, x)
    second = bench.evaluate(kernels.COPY, x)
    assert first[1:] == second[1:]


def test_wide_copy_executes_fewer_instructions_and_is_not_slower(bench: Bench) -> None:
    x = square_matrix(512)
    _, scalar_us, scalar = bench.evaluate(kernels.COPY, x)
    output, wide_us, wide = bench.evaluate(kernels.COPY_WIDE, x)
    np.testing.assert_array_equal(output, x)
    assert wide.totals[Metric.INSTRUCTIONS] < 0.4 * scalar.totals[Metric.INSTRUCTIONS]
    assert wide.totals[Metric.GLOBAL_LOAD_SECTORS] == scalar.totals[Metric.GLOBAL_LOAD_SECTORS]
    assert wide_us <= scalar_us


def test_coalesced_copy_beats_strided_copy(bench: Bench) -> None:
    x = square_matrix(1024)
    _, coalesced_us, _ = bench.evaluate(kernels.COPY, x)
    output, strided_us, strided = bench.evaluate(kernels.COPY_STRIDED, x)
    np.testing.assert_array_equal(output, x)
    assert strided.kernels[0].metrics[Metric.LOAD_SECTOR_USE] == 12.5
    assert "sparse_access" in strided.kernels[0].notes
    assert coalesced_us < 0.7 * strided_us


def test_padded_transpose_beats_conflicted_transpose(bench: Bench) -> None:
    x = square_matrix(1024)
    padded_output, padded_us, padded = bench.evaluate(kernels.TRANSPOSE_PADDED, x)
    output, conflicted_us, conflicted = bench.evaluate(kernels.TRANSPOSE_CONFLICTED, x)
    np.testing.assert_array_equal(padded_output, x.T)
    np.testing.assert_array_equal(output, x.T)
    loads = x.size // 32
    assert conflicted.totals[Metric.SHARED_LOAD_CONFLICTS] == 31 * loads
    assert padded.totals[Metric.SHARED_LOAD_CONFLICTS] == 0
    assert padded_us < 0.8 * conflicted_us


def test_tiled_product_beats_naive_product(bench: Bench) -> None:
    x = square_matrix(384)
    naive_output, naive_us, _ = bench.evaluate(kernels.SQUARE_NAIVE, x)
    tiled_output, tiled_us, tiled = bench.evaluate(kernels.SQUARE_TILED, x)
    expected = x.astype(np.float64) @ x.astype(np.float64)
    np.testing.assert_allclose(naive_output, expected, atol=1e-3)
    np.testing.assert_allclose(tiled_output, expected, atol=1e-3)
    assert tiled.kernels[0].metrics[Metric.SHARED_STATIC] == 2 * 32 * 32 * 4
    assert tiled_us < 0.85 * naive_us  # 0.86 on an H200 for a tile without registers: `gemm_shared_tile`


def test_clean_kernel_has_no_findings(bench: Bench) -> None:
    x = square_matrix(64)
    assert bench.device.sanitize(bench.build(kernels.COPY), bench.job(x), timeout_s=TIMEOUT_S) == []


def test_out_of_bounds_access_is_found_and_fails_the_call(bench: Bench) -> None:
    x = square_matrix(64)
    build, job = bench.build(kernels.OUT_OF_BOUNDS), bench.job(x)
    findings = bench.device.sanitize(build, job, timeout_s=TIMEOUT_S)
    assert [finding.tool for finding in findings] == ["memcheck"]
    assert findings[0].location == "candidate.cu:2"
    with pytest.raises(RunFailure) as caught, bench.device.open(build, job, timeout_s=TIMEOUT_S) as session:
        session.call(0)
    assert caught.value.kind is RunFailureKind.RUNTIME


def test_unknown_instruction_is_named_with_its_source_line(bench: Bench) -> None:
    with pytest.raises(BuildFailure) as caught:
        bench.build(kernels.NOT_EMULATABLE)
    assert caught.value.kind is BuildFailureKind.NOT_EMULATABLE
    assert "multimem.red" in caught.value.reason
    assert ".cu:" in caught.value.reason
