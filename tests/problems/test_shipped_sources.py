"""The shipped C++ and CUDA sources compile: two problems of the day, with --all every one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from rotation import rotating

from kernelblaster.devices.build.toolchain import Toolchain, ToolMissing
from kernelblaster.paths import data_dir, harness_include_dir
from kernelblaster.problems.dataset import Dataset
from kernelblaster.problems.problem import Problem
from kernelblaster.problems.start import read_start

PROBLEMS = Dataset(data_dir() / "kernelbench-cuda").problems()
every_problem = pytest.mark.parametrize("problem", rotating(PROBLEMS, 2))
pytestmark = pytest.mark.nvcc


@pytest.fixture(scope="module")
def toolchain() -> Toolchain:
    try:
        return Toolchain.find()
    except ToolMissing as error:
        pytest.skip(error.message)


def compiles(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr.strip()


def includes(toolchain: Toolchain) -> list[str]:
    return [f"-I{path}" for path in (harness_include_dir(), *toolchain.include_dirs)]


@every_problem
def test_drivers_compile_without_warnings(problem: Problem, toolchain: Toolchain) -> None:
    flags = ["-fsyntax-only", "-std=c++17", "-Wall", "-Wextra", "-Wno-unused-parameter"]
    compiles([str(toolchain.host_compiler), *flags, *includes(toolchain), str(problem.driver_path)])


@every_problem
def test_kernels_compile_without_warnings(problem: Problem, toolchain: Toolchain, tmp_path: Path) -> None:
    flags = ["-ptx", "-arch=sm_90", "-std=c++17", "-DKB_FP16", "-Xcompiler", "-Wall"]
    output = tmp_path / "kernel.ptx"
    kernel = tmp_path / "kernel.cu"
    kernel.write_text(read_start(problem))
    compiles([str(toolchain.nvcc), *flags, *includes(toolchain), str(kernel), "-o", str(output)])
    assert ".visible .entry" in output.read_text()
