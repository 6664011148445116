"""CUDA functions that the stand-in runtime lacks are the emulator's limit, not the candidate's mistake."""

from __future__ import annotations

import pytest

from kernelblaster.devices.build.toolchain import ToolMissing
from kernelblaster.devices.emulated.device import EmulatedDevice
from kernelblaster.devices.failures import BuildFailure, BuildFailureKind
from kernelblaster.evaluation.integrity.candidate_rules import CandidateRules
from kernelblaster.paths import data_dir
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Precision

pytestmark = pytest.mark.nvcc

SOURCE = """
#include <kernelblaster/scalar.cuh>
%s
void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) { %s; }
"""


@pytest.fixture(scope="module")
def device() -> EmulatedDevice:
    try:
        return EmulatedDevice.create(policy=CandidateRules())
    except ToolMissing as error:
        pytest.skip(f"needs nvcc: {error.message}")


@pytest.mark.parametrize(
    ("declaration", "statement", "kind"),
    [
        ("", "cudaIpcMemHandle_t handle; cudaIpcGetMemHandle(&handle, nullptr)", "not_emulatable"),
        ("void helper();", "helper()", "load_error"),
        ("void helper();", "helper(); cudaIpcCloseMemHandle(nullptr)", "load_error"),
    ],
)
def test_a_missing_runtime_function_is_not_emulatable(device, declaration, statement, kind):
    problem = load_problem(data_dir() / "kernelbench-cuda/level1/023_Softmax")
    harness = device.prepare(problem, Precision.FP16)
    with pytest.raises(BuildFailure) as caught:
        device.build(SOURCE % (declaration, statement), harness)
    assert caught.value.kind is BuildFailureKind(kind), caught.value.reason
