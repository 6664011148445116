"""A device, its driver and the files of a job, for tests that run real kernels in the emulator."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from shutil import which

import numpy as np
import pytest

from kernelblaster.devices.base import COUNTED, Build, Harness, Job, JobTensor, profile_once
from kernelblaster.devices.build.toolchain import SearchPath, ToolMissing, find_nvccs
from kernelblaster.devices.emulated.device import EmulatedDevice
from kernelblaster.devices.profiles import Profile
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.problem import TensorRole, TensorSpec

TIMEOUT_S = 120


def _has_tools() -> bool:
    try:
        find_nvccs(SearchPath.current())
    except ToolMissing:
        return False
    return which("g++") is not None


needs_tools = pytest.mark.skipif(not _has_tools(), reason="needs nvcc and g++")


@dataclass(frozen=True)
class Bench:
    """A device, its driver, and the files of one n x n job."""

    device: EmulatedDevice
    harness: Harness
    directory: Path

    def build(self, source: str) -> Build:
        return self.device.build(source, self.harness)

    def job(self, x: np.ndarray) -> Job:
        shape = x.shape
        x.tofile(self.directory / "x")
        (self.directory / "y").write_bytes(bytes(x.nbytes))
        return Job(
            tensors=(
                JobTensor(TensorSpec("output", TensorRole.OUTPUT, DType.FLOAT32, shape), self.directory / "y"),
                JobTensor(TensorSpec("x", TensorRole.INPUT, DType.FLOAT32, shape), self.directory / "x"),
            ),
            sizes={"n": shape[0]},
            scalars={},
        )

    def output(self, x: np.ndarray) -> np.ndarray:
        return np.fromfile(self.directory / "y", dtype=np.float32).reshape(x.shape)

    def evaluate(self, source: str, x: np.ndarray) -> tuple[np.ndarray, float, Profile]:
        """Outputs, modelled microseconds and profile, the way the evaluation asks for them."""
        build, job = self.build(source), self.job(x)
        with self.device.open(build, job, timeout_s=TIMEOUT_S) as session:
            assert session.call(0xAB).mutated_inputs == ()
            samples = session.time_calls([COUNTED] * 30)
        assert len(samples) == 1
        assert samples[0].host_us is None
        return self.output(x), samples[0].device_us, profile_once(self.device, build, job, timeout_s=TIMEOUT_S)
