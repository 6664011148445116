"""A self-checking problem where there is no GPU: its driver on libtorch's CPU tensors."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from self_checking_support import FIXTURE, HERE, HostDevice

from kernelblaster.config import EvaluationConfig
from kernelblaster.devices.build.recipes import Recipes
from kernelblaster.devices.build.self_checking import Libtorch, SelfCheckingBuilder
from kernelblaster.devices.build.toolchain import Toolchain, ToolMissing
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.integrity.candidate_rules import CandidateRules
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload

HEADERS = ("core/Tensor", *(f"ops/{name}" for name in ("allclose", "empty", "randn", "relu")))
"""What the driver needs of libtorch; all of it takes four times as long to compile."""


@pytest.fixture(scope="session")
def host_device(tmp_path_factory: pytest.TempPathFactory) -> HostDevice:
    try:
        tools = Toolchain.find()
    except ToolMissing as error:
        pytest.skip(error.message)
    directory = tmp_path_factory.mktemp("runtime")
    sources = [str(HERE.parent / "devices" / "host_cudart.cpp"), str(HERE / "host_runtime.cpp")]
    includes = [f"-I{path}" for path in tools.include_dirs]
    library = ["-shared", "-fPIC", "-o", str(directory / "libhostcudart.so")]
    subprocess.run([str(tools.host_compiler), "-O1", *includes, *sources, *library], check=True, timeout=100)
    root = Path(torch.__file__).parent
    libtorch = Libtorch(
        include_dirs=(root / "include", root / "include" / "torch" / "csrc" / "api" / "include"),
        library_dir=root / "lib",
        version=torch.__version__,
        # Not `torch`: a build with CUDA brings its kernels along, which register with the stand-in for the runtime.
        libraries=("torch_cpu", "c10"),
    )
    link = (f"-L{directory}", f"-Wl,-rpath,{directory}", "-lhostcudart", "-lpthread")
    return HostDevice(
        SelfCheckingBuilder(libtorch, Recipes(tools, "sm_90a", tuple(link)), CandidateRules(), directory / "cache"),
        directory,
    )


@pytest.fixture(scope="session")
def host_problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """The fixture's driver on CPU tensors."""
    directory = tmp_path_factory.mktemp("set") / "level1" / "019_ReLU"
    directory.mkdir(parents=True)
    harness = (FIXTURE / "level1" / "019_ReLU" / "driver.cpp").read_text()
    includes = "".join(f"#include <ATen/{name}.h>\n" for name in HEADERS)
    harness = harness.replace("torch::kCUDA", "torch::kCPU").replace("#include <torch/torch.h>\n", includes)
    harness = harness.replace("torch::", "at::")
    (directory / "driver.cpp").write_text(harness)
    (directory / "init.cu").write_text("")
    return load_problem(directory)


@pytest.fixture
def host_evaluator(host_device: HostDevice) -> Iterator[Evaluator]:
    config = EvaluationConfig(max_seconds_timing=0.2, timeout_s=60)
    with InputStore() as inputs:
        yield Evaluator(host_device, inputs, config, StandardWorkload.MEDIUM, precision=Precision.FP16)
