"""Foreign directories: their sources made to build, their words read with suspicion."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from problem_files import FOREIGN_DRIVER

from kernelblaster.devices.toolchain import Toolchain, ToolMissing
from kernelblaster.errors import EnvironmentError_, ProblemError
from kernelblaster.problems.foreign import (
    WeakVerdict,
    candidate_source,
    driver_source,
    is_foreign,
    launcher_declaration,
    launcher_header,
    read_words,
)
from kernelblaster.problems.foreign_program import (
    ForeignBuildError,
    ForeignTools,
    Libtorch,
    build_foreign,
    run_foreign,
)
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Problem


def test_the_declaration_is_taken_out_of_the_driver() -> None:
    assert launcher_declaration(FOREIGN_DRIVER) == (
        "void launch_gpu_implementation(void* output, const void* input, const std::vector<int64_t>& shape, "
        "double slope);"
    )


@pytest.mark.parametrize(
    "driver",
    [
        "",
        "// void launch_gpu_implementation(int n);",
        "/* void launch_gpu_implementation(int n); */",
        "int main() { launch_gpu_implementation(1); }",
    ],
)
def test_a_driver_without_a_declaration_is_refused(driver: str) -> None:
    with pytest.raises(ProblemError, match="declares no launch_gpu_implementation"):
        launcher_declaration(driver)


def test_a_double_slash_inside_a_string_is_no_comment() -> None:
    driver = 'auto u = "https://x"; void launch_gpu_implementation(int n);'
    assert launcher_declaration(driver) == "void launch_gpu_implementation(int n);"


def test_a_driver_on_the_harness_is_not_foreign(tmp_path: Path) -> None:
    driver = tmp_path / "driver.cpp"
    driver.write_text("#include <torch/torch.h>\n")
    assert is_foreign(tmp_path)
    driver.write_text("#include <kernelblaster/driver.hpp>\n#include <torch/torch.h>\n")
    assert not is_foreign(tmp_path)
    driver.write_text("#include <torch/torch.h>\n")
    (tmp_path / "reference.py").touch()
    assert not is_foreign(tmp_path)


@pytest.mark.parametrize(
    "head",
    [
        "void launch_gpu_implementation(int* output, int value) {",
        'extern "C" void launch_gpu_implementation(int* output, int value) {',
        "inline void launch_gpu_implementation(int* output,\n    int value)\n{",
        'extern "C" inline void launch_gpu_implementation(int* output, int value) {',
        "static  void launch_gpu_implementation(int* output, int value) {",
        'extern "C" {\nvoid launch_gpu_implementation(int* output, int value) {',
    ],
)
def test_every_definition_gets_the_symbol_the_driver_asks_for(tmp_path: Path, head: str) -> None:
    """Compiled by the host compiler, so that it runs everywhere: only linkage is at stake."""
    tail = "}}" if head.startswith('extern "C" {') else "}"
    source = (
        f'#include "cuda_model.cuh"\n{head} std::printf("%zu", std::vector<int>(1).size()); *output = value; {tail}'
    )
    header = launcher_header("void launch_gpu_implementation(int* output, int value);")
    (tmp_path / "cuda_model.cuh").write_text(header.replace("#include <cuda_runtime.h>", ""))
    (tmp_path / "kernel.cpp").write_text(candidate_source(source))
    compiled = tmp_path / "kernel.o"
    subprocess.run(["g++", "-c", tmp_path / "kernel.cpp", "-o", compiled], check=True, timeout=60)
    symbols = subprocess.run(["nm", compiled], capture_output=True, text=True, check=True, timeout=60).stdout
    assert re.search(r" T _Z25launch_gpu_implementationPii$", symbols, re.MULTILINE)


@pytest.mark.parametrize("lines", [1, 4])
def test_messages_keep_the_line_numbers_of_the_source(tmp_path: Path, lines: int) -> None:
    (tmp_path / "cuda_model.cuh").touch()
    (tmp_path / "kernel.cpp").write_text(candidate_source("\n" * (lines - 1) + "nonsense"))
    done = subprocess.run(
        ["g++", "-fsyntax-only", tmp_path / "kernel.cpp"], capture_output=True, text=True, check=False, timeout=60
    )
    assert f"kernel.cpp:{lines}:1: error" in done.stderr


def test_a_driver_loses_c_linkage_and_the_missing_header() -> None:
    source = driver_source(FOREIGN_DRIVER)
    assert "cuda_model.cuh" not in source
    assert 'extern "C"' not in source
    assert source.count("\n") == FOREIGN_DRIVER.count("\n")


@pytest.mark.parametrize(
    ("output", "returncode", "verdict"),
    [
        ("passed\n", 0, WeakVerdict.PASSED),
        ("max error 0.01\nPassed\n", 0, WeakVerdict.PASSED),
        ("  passed  ", 0, WeakVerdict.PASSED),
        ("failed\n", 0, WeakVerdict.FAILED),
        ("passed\nfailed\n", 0, WeakVerdict.FAILED),
        ("passed\nFAILED: 3\n", 0, WeakVerdict.FAILED),
        ("passed\n", 1, WeakVerdict.FAILED),
        ("passed\n", -11, WeakVerdict.FAILED),
        ("not passed\n", 0, WeakVerdict.UNCLEAR),
        ("bypassed\n", 0, WeakVerdict.UNCLEAR),
        ("passed 3 of 4\n", 0, WeakVerdict.UNCLEAR),
        ("", 0, WeakVerdict.UNCLEAR),
    ],
)
def test_words_are_read_exactly(output: str, returncode: int, verdict: WeakVerdict) -> None:
    assert read_words(output, returncode) is verdict


@given(before=st.text(), after=st.text(), returncode=st.integers(-64, 255))
def test_nothing_turns_a_failure_into_a_pass(before: str, after: str, returncode: int) -> None:
    assert read_words(f"{before}\nfailed\n{after}", returncode) is WeakVerdict.FAILED


def program(tmp_path: Path, script: str) -> Path:
    path = tmp_path / "program"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def alive(stat: Path) -> bool:
    try:
        return stat.read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_run_reads_what_the_program_says(tmp_path: Path) -> None:
    run = run_foreign(program(tmp_path, "echo close enough; echo passed"), timeout_s=20)
    assert (run.verdict, run.returncode, run.timed_out) == (WeakVerdict.PASSED, 0, False)
    assert run.output == "close enough\npassed\n"


def test_a_pass_before_a_hang_is_a_failure_and_leaves_no_process(tmp_path: Path) -> None:
    started = time.monotonic()
    script = "echo passed; (sleep 60; echo late) & echo $! > child; sleep 60"
    run = run_foreign(program(tmp_path, script), timeout_s=1)
    assert run.timed_out
    assert run.verdict is WeakVerdict.FAILED
    assert time.monotonic() - started < 20
    child = Path("/proc") / (tmp_path / "child").read_text().strip() / "stat"
    # A killed orphan is gone once its new parent has noticed.
    while alive(child) and time.monotonic() - started < 20:
        time.sleep(0.05)
    assert not alive(child)


def test_a_crash_after_a_pass_is_a_failure(tmp_path: Path) -> None:
    run = run_foreign(program(tmp_path, "echo passed; kill -SEGV $$"), timeout_s=20)
    assert (run.verdict, run.returncode) == (WeakVerdict.FAILED, -11)


def test_endless_output_is_bounded(tmp_path: Path) -> None:
    run = run_foreign(program(tmp_path, "yes passed | head -c 1000000"), timeout_s=20)
    assert len(run.output) == 1 << 16


SELF_JUDGING = """
#include <torch/torch.h>
#include <cstdio>
void launch_gpu_implementation(int* value, int addend);
int main() {
    int value = stand_in_value();
    launch_gpu_implementation(&value, 2);
    std::puts(value == 42 ? "passed" : "failed");
}
"""


@pytest.fixture(scope="module")
def tools() -> ForeignTools:
    try:
        found = Toolchain.find()
    except ToolMissing as error:
        pytest.skip(error.message)
    return ForeignTools(found.nvcc, "sm_90", found.include_dirs, found.cudart_link_args, found.host_compiler)


@pytest.fixture(scope="module")
def libtorch(tmp_path_factory: pytest.TempPathFactory) -> Libtorch:
    """A library in libtorch's place: the driver needs its header to compile and its symbol to link."""
    root = tmp_path_factory.mktemp("libtorch")
    (root / "include/torch").mkdir(parents=True)
    (root / "include/torch/torch.h").write_text("int stand_in_value();\n")
    (root / "torch.cpp").write_text("int stand_in_value() { return 40; }\n")
    command = ["g++", "-shared", "-fPIC", str(root / "torch.cpp"), "-o", str(root / "libtorch.so")]
    subprocess.run(command, check=True, timeout=60)
    return Libtorch((root / "include",), root, libraries=("torch",))


@pytest.fixture
def foreign(tmp_path: Path) -> Problem:
    directory = tmp_path / "level1" / "001_Add"
    directory.mkdir(parents=True)
    (directory / "driver.cpp").write_text(SELF_JUDGING)
    (directory / "final_cuda.cu").write_text("void launch_gpu_implementation(int* value, int addend) {}\n")
    return load_problem(directory)


@pytest.mark.nvcc
@pytest.mark.slow
def test_a_foreign_problem_builds_and_runs(
    foreign: Problem, tools: ForeignTools, libtorch: Libtorch, tmp_path: Path
) -> None:
    build = tmp_path / "build"
    wrong = foreign.init_path.read_text()
    assert run_foreign(build_foreign(foreign, wrong, tools, libtorch, build), 20).verdict is WeakVerdict.FAILED
    (driver,) = build.glob("driver_*.o")
    compiled_at = driver.stat().st_mtime_ns
    right = '#include "cuda_model.cuh"\nextern "C" void launch_gpu_implementation(int* v, int a) { *v += a; }\n'
    assert run_foreign(build_foreign(foreign, right, tools, libtorch, build), 20).verdict is WeakVerdict.PASSED
    assert driver.stat().st_mtime_ns == compiled_at
    with pytest.raises(ForeignBuildError, match="the kernel does not compile") as caught:
        build_foreign(foreign, "nonsense", tools, libtorch, build)
    assert "nonsense" in caught.value.log


def test_a_missing_compiler_is_the_machines_fault(foreign: Problem, libtorch: Libtorch, tmp_path: Path) -> None:
    tools = ForeignTools(tmp_path / "nvcc", "sm_90", (), (), tmp_path / "g++")
    with pytest.raises(EnvironmentError_, match="is not there"):
        build_foreign(foreign, "", tools, libtorch, tmp_path / "build")
