from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from kernelblaster.devices.base import Build, Harness, Job, JobTensor
from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.paths import (
    cache_dir,
    candidate_link_script,
    deferred_source,
    harness_include_dir,
    initialise_source,
    program_source,
)
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.problem import Precision, Problem, ProblemId, TensorRole, TensorSpec

HERE = Path(__file__).parent
LAUNCHER_SYMBOL = "_Z25launch_gpu_implementationPvS_S_llf"
"""Of host_driver.cpp."""
OTHER = """
#include <cstdint>
void launch_gpu_implementation(void* output, void* x, void* w, int64_t count, int64_t, float scale) {
    for (int64_t i = 0; i < count; ++i) {
        static_cast<float*>(output)[i] = 3 * (static_cast<float*>(x)[i] * scale + *static_cast<float*>(w));
    }
}
"""


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    return Toolchain.find()


@pytest.fixture(scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Makes caches of builds that are empty, but for the harness' program, which takes five seconds to compile."""
    (cache_dir() / "main").mkdir(parents=True, exist_ok=True)

    def make() -> Path:
        cache = tmp_path_factory.mktemp("cache")
        (cache / "main").symlink_to(cache_dir() / "main")
        return cache

    return make


@pytest.fixture(scope="session")
def shared_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of this run of the tests that all workers see."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def host_build(toolchain: Toolchain, shared_directory: Path) -> Build:
    """The real harness program, with a CUDA runtime that lives in host memory, and a candidate that it loads.

    One worker compiles it, which takes seconds.
    """
    directory, runtime_directory = shared_directory / "host_build", shared_directory / "host_runtime"
    includes = [f"-I{path}" for path in (harness_include_dir(), *toolchain.include_dirs)]
    compiler = [str(toolchain.host_compiler), "-std=c++17", "-O1", *includes]
    harness, candidate, cudart = (str(HERE / f"host_{name}.cpp") for name in ("driver", "candidate", "cudart"))
    program, library = directory / "program", directory / "candidate.so"

    def build(*arguments: str) -> None:
        subprocess.run([*compiler, *arguments, "-lpthread", "-ldl"], check=True)

    problem = Problem(ProblemId(1, 999), "Host", HERE, workloads={})
    runtime = runtime_directory / "libhostcudart.so"
    with FileLock(shared_directory / "host_build.lock"):
        if not library.exists():  # the last of what is built
            directory.mkdir(exist_ok=True)
            runtime_directory.mkdir(exist_ok=True)
            build("-shared", "-fPIC", cudart, "-o", str(runtime))
            shared = (str(runtime), f"-Wl,-rpath,{runtime.parent}")
            own = ("-static-libstdc++", "-Wl,--exclude-libs,ALL")
            sources = (harness, str(program_source()), str(deferred_source()))
            build(f'-DKB_LAUNCHER="{LAUNCHER_SYMBOL}"', *sources, *shared, *own, "-o", str(program))
            alone = ("-shared", "-fPIC", "-nostartfiles", "-T", str(candidate_link_script()))
            build(*alone, candidate, str(initialise_source()), *shared, "-o", str(library))
    made = Harness(problem, Precision.FP32, directory / "unused.o", LAUNCHER_SYMBOL, (runtime.parent,), program)
    return Build("0" * 64, program, Path(candidate), made, resources=(), seconds=0.0, library=library)


@pytest.fixture(scope="session")
def host_other(host_build: Build, toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Another candidate for the same program: three times what the honest one computes, whatever the mode."""
    directory = tmp_path_factory.mktemp("host_other")
    source, library = directory / "other.cpp", directory / "other.so"
    source.write_text(OTHER)
    alone = ("-shared", "-fPIC", "-nostartfiles", "-T", str(candidate_link_script()))
    command = [str(toolchain.host_compiler), "-std=c++17", *alone, str(source), str(initialise_source())]
    subprocess.run([*command, "-o", str(library)], check=True)
    return replace(host_build, digest="1" * 64, library=library)


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
            JobTensor(TensorSpec("x", TensorRole.INPUT, DType.FLOAT32, (count,)), directory / "x"),
            JobTensor(TensorSpec("fc.weight", TensorRole.WEIGHT, DType.FLOAT32, ()), directory / "w"),
            JobTensor(TensorSpec("output", TensorRole.OUTPUT, DType.FLOAT32, (1, count)), directory / "output"),
        )
        return Job(tensors, sizes={"count": count, "mode": mode}, scalars={"scale": 2.0})

    return make
