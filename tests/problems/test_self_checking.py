"""Self-checking directories: their sources made to build, their words read with suspicion."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from problem_files import FOREIGN_DRIVER

from kernelblaster.problems.self_checking import (
    WeakVerdict,
    candidate_source,
    driver_source,
    is_self_checking,
    read_output,
)


def test_a_driver_on_the_harness_is_not_foreign(tmp_path: Path) -> None:
    driver = tmp_path / "driver.cpp"
    driver.write_text("#include <torch/torch.h>\n")
    assert is_self_checking(tmp_path)
    driver.write_text("#include <kernelblaster/driver.hpp>\n#include <torch/torch.h>\n")
    assert not is_self_checking(tmp_path)
    driver.write_text("#include <torch/torch.h>\n")
    (tmp_path / "reference.py").touch()
    assert not is_self_checking(tmp_path)


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
    (tmp_path / "kernel.cpp").write_text(candidate_source(source))
    compiled = tmp_path / "kernel.o"
    subprocess.run(["g++", "-c", tmp_path / "kernel.cpp", "-o", compiled], check=True, timeout=60)
    symbols = subprocess.run(["nm", compiled], capture_output=True, text=True, check=True, timeout=60).stdout
    assert re.search(r" T _Z25launch_gpu_implementationPii$", symbols, re.MULTILINE)


@pytest.mark.parametrize("lines", [1, 4])
def test_messages_keep_the_line_numbers_of_the_source(tmp_path: Path, lines: int) -> None:
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
    assert read_output(output, returncode) is verdict


@given(before=st.text(), after=st.text(), returncode=st.integers(-64, 255))
def test_nothing_turns_a_failure_into_a_pass(before: str, after: str, returncode: int) -> None:
    assert read_output(f"{before}\nfailed\n{after}", returncode) is WeakVerdict.FAILED
