from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelblaster.devices.base import Build, Driver, Job, JobTensor
from kernelblaster.devices.toolchain import Toolchain
from kernelblaster.paths import harness_include_dir
from kernelblaster.problems.problem import Precision, Problem, ProblemId, TensorRole, TensorSpec

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    return Toolchain.find()


@pytest.fixture(scope="session")
def host_build(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Build:
    """The real driver program, linked with a candidate and a CUDA runtime that live in host memory."""
    directory = tmp_path_factory.mktemp("host_build")
    includes = [f"-I{path}" for path in (harness_include_dir(), *toolchain.include_dirs)]
    sources = [str(HERE / name) for name in ("host_driver.cpp", "host_candidate.cpp", "host_cudart.cpp")]
    program = directory / "program"
    subprocess.run(
        [str(toolchain.host_compiler), "-std=c++17", "-O1", *includes, *sources, "-o", str(program), "-lpthread"],
        check=True,
    )
    problem = Problem(ProblemId(1, 999), "Host", HERE, sizes={})
    driver = Driver(problem, Precision.FP32, directory / "unused.o", "unused")
    return Build("0" * 64, program, HERE / "host_candidate.cpp", driver, resources=(), seconds=0.0)


@pytest.fixture
def make_job(tmp_path: Path) -> Callable[..., Job]:
    """A job over three float tensors; `mode` chooses how the candidate behaves, names as in host_candidate.cpp."""
    import numpy as np

    def make(mode: int = 0, count: int = 1000) -> Job:
        directory = tmp_path / "tensors with blanks"
        directory.mkdir(exist_ok=True)
        np.arange(count, dtype=np.float32).tofile(directory / "x")
        np.array([0.5], dtype=np.float32).tofile(directory / "w")
        tensors = (
            JobTensor(TensorSpec("x", TensorRole.INPUT, "fp32", (count,)), directory / "x"),
            JobTensor(TensorSpec("fc.weight", TensorRole.WEIGHT, "fp32", ()), directory / "w"),
            JobTensor(TensorSpec("output", TensorRole.OUTPUT, "fp32", (1, count)), directory / "output"),
        )
        return Job(tensors, sizes={"count": count, "mode": mode}, scalars={"scale": 2.0})

    return make
