"""One emulated device and one driver for all tests that run real kernels."""

from __future__ import annotations

import sys
from pathlib import Path

import emulated_kernels as kernels
import pytest
from emulated_bench import Bench

from kernelblaster.devices.emulated.device import EmulatedDevice
from kernelblaster.evaluation.integrity.candidate_rules import CandidateRules
from kernelblaster.problems.problem import Precision, Problem, ProblemId

# Launch records and sampled kernels are the emulator's own tests', too.
sys.path += [str(Path(__file__).parents[1] / "ptxemu" / room) for room in ("model", "program")]


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """An emulated H200 and a driver with one square input and output."""
    directory = tmp_path_factory.mktemp("problem")
    (directory / "driver.cpp").write_text(kernels.DRIVER, encoding="utf-8")
    problem = Problem(ProblemId(1, 1), "Square", directory, workloads={})
    device = EmulatedDevice.create("h200", policy=CandidateRules())
    return Bench(device, device.prepare(problem, Precision.FP32), directory)
