from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.nvcc


@pytest.mark.parametrize(
    ("kernel", "error"),
    [
        ("out_of_bounds", "cudaErrorIllegalAddress"),
        ("misaligned", "cudaErrorMisalignedAddress"),
        ("asserts", "cudaErrorAssert"),
        ("stuck_barrier", "cudaErrorLaunchTimeout"),
    ],
)
def test_fault_is_reported_with_kernel_and_line(runner, kernel, error):
    outcome = runner(kernel, "1", "32", [], 128, 5)
    assert outcome.code == 40
    assert error in outcome.stderr
    assert kernel in outcome.stderr
    assert "kernels.cu" in outcome.stderr


def test_shared_memory_is_bounds_checked(runner):
    outcome = runner("shared_out_of_bounds", "1", "32", [], 128, 1, shared=128)
    assert outcome.code == 40
    assert "shared_out_of_bounds" in outcome.stderr


@pytest.mark.parametrize(
    ("grid", "block", "shared", "error"),
    [
        ("1", "1025", 0, "cudaErrorInvalidConfiguration"),
        ("1", "32,32,2", 0, "cudaErrorInvalidConfiguration"),
        ("1,65536", "32", 0, "cudaErrorInvalidConfiguration"),
        ("0", "32", 0, "cudaErrorInvalidConfiguration"),
        ("1", "32", 60 * 1024, "cudaErrorInvalidValue"),
        ("1", "32", 240 * 1024, "cudaErrorInvalidValue"),
    ],
)
def test_impossible_launches_are_refused(runner, grid, block, shared, error):
    outcome = runner("vadd", grid, block, [np.zeros(4, np.float32)] * 2, 16, 4, shared=shared)
    assert outcome.code == 40
    assert error in outcome.stderr


def test_large_dynamic_shared_memory_after_asking(runner):
    x = np.ones(256, np.float32)
    outcome = runner("reduce_atomic", "1", "128", [x], 4, 256, shared=100 * 1024)
    assert outcome.array("f4")[0] == 256
