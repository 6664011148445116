"""The rules for object files, on real objects from the host compiler."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelblaster.devices.build.symbols import Symbols, read_symbols
from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.facts import Library
from kernelblaster.devices.failures import BuildFailure, BuildFailureKind
from kernelblaster.evaluation.integrity.symbol_rules import check_symbols

EMPTY = Symbols(frozenset(), frozenset(), frozenset())
Compile = Callable[[str], Symbols]


@pytest.fixture
def symbols_of(tmp_path: Path) -> Compile:
    toolchain = Toolchain.find()

    def build(source: str) -> Symbols:
        (tmp_path / "a.cpp").write_text(source)
        subprocess.run(
            [str(toolchain.host_compiler), "-std=c++17", "-O1", "-c", "a.cpp", "-o", "a.o"], cwd=tmp_path, check=True
        )
        return read_symbols(toolchain, str(tmp_path / "a.o"))

    return build


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("int main() { return 0; }", "main"),
        ('extern "C" int cudaEventRecord(void*, void*) { return 0; }', "cudaEventRecord"),
        ('extern "C" void* memcpy(void* a, const void*, unsigned long) { return a; }', "memcpy"),
        ('#include <cstdlib>\nvoid f() { if (system("x")) abort(); }', "system"),
        ("#include <unistd.h>\nvoid f() { fork(); }", "fork"),
        ('#include <dlfcn.h>\nvoid* f() { return dlopen("x", 1); }', "dlopen"),
        ("#include <sys/ptrace.h>\nvoid f() { ptrace(PTRACE_TRACEME, 0, 0, 0); }", "ptrace"),
        ('#include <fstream>\nvoid f() { std::ifstream("x"); }', "basic_ifstream"),
        ("#include <thread>\nvoid g(); void f() { std::thread(g).detach(); }", "thread"),
        ('#include <cstdlib>\nchar* f() { return getenv("X"); }', "getenv"),
        ('extern "C" int cublasCreate_v2(void*); int f() { return cublasCreate_v2(0); }', "cublasCreate_v2"),
        ('extern "C" int cusparseCreate(void*); int f() { return cusparseCreate(0); }', "cusparseCreate"),
        ('extern "C" int cudaProfilerStop(); int f() { return cudaProfilerStop(); }', "cudaProfilerStop"),
        ('__asm__(".globl cudaMalloc\\ncudaMalloc: ret");', "cudaMalloc"),
    ],
)
def test_what_no_kernel_needs_is_refused_by_name(symbols_of: Compile, source: str, named: str) -> None:
    harness = Symbols(frozenset({"main"}), frozenset({"main"}), frozenset({"memcpy", "cudaMalloc"}))
    with pytest.raises(BuildFailure) as failure:
        check_symbols(symbols_of(source), harness, ())
    assert failure.value.kind is BuildFailureKind.POLICY
    assert named in failure.value.log


def test_an_allowed_library_may_be_asked_for(symbols_of: Compile) -> None:
    symbols = symbols_of('extern "C" int cublasCreate_v2(void*); int f() { return cublasCreate_v2(0); }')
    check_symbols(symbols, EMPTY, [Library.CUBLAS])
    with pytest.raises(BuildFailure, match="cublas"):
        check_symbols(symbols, EMPTY, [Library.CUDNN])


def test_ordinary_host_code_is_allowed(symbols_of: Compile) -> None:
    source = """
    #include <cstdio>
    #include <map>
    #include <stdexcept>
    #include <string>
    #include <vector>
    static std::map<std::string, std::vector<int>> plans;
    void launch_gpu_implementation(void* output, void* x, long n, float eps) {
        if (n < 0) throw std::runtime_error("negative");
        plans["a"].push_back(int(n));
        std::printf("%f", eps);
    }
    """
    check_symbols(symbols_of(source), Symbols(frozenset(), frozenset(), frozenset({"printf", "_Znwm"})), ())
