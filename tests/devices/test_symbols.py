"""The audit of object files, on real objects from the host compiler."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelblaster.devices.build.symbols import Symbols, check_policy, match_launcher, read_symbols
from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.facts import Library
from kernelblaster.devices.failures import BuildFailure, BuildFailureKind

WANTED = "_Z25launch_gpu_implementationPvS_lf"
DECLARATION = "void launch_gpu_implementation(void* output, void* x, int64_t n, float eps);"
EMPTY = Symbols(frozenset(), frozenset(), frozenset())
Compile = Callable[[str], Symbols]


@pytest.fixture
def symbols_of(toolchain: Toolchain, tmp_path: Path) -> Compile:
    def build(source: str) -> Symbols:
        (tmp_path / "a.cpp").write_text(source)
        subprocess.run(
            [str(toolchain.host_compiler), "-std=c++17", "-O1", "-c", "a.cpp", "-o", "a.o"], cwd=tmp_path, check=True
        )
        return read_symbols(toolchain, str(tmp_path / "a.o"))

    return build


def test_definitions_and_requests_are_told_apart(symbols_of: Compile) -> None:
    found = symbols_of("int other(); int mine() { return other(); } inline int weak() { return 1; } int (*p)() = weak;")
    assert found.strong == {"_Z4minev", "p"}
    assert found.defined == {"_Z4minev", "p", "_Z4weakv"}
    assert found.undefined == {"_Z5otherv"}


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
        check_policy(symbols_of(source), harness, ())
    assert failure.value.kind is BuildFailureKind.POLICY
    assert named in failure.value.log


def test_an_allowed_library_may_be_asked_for(symbols_of: Compile) -> None:
    symbols = symbols_of('extern "C" int cublasCreate_v2(void*); int f() { return cublasCreate_v2(0); }')
    check_policy(symbols, EMPTY, [Library.CUBLAS])
    with pytest.raises(BuildFailure, match="cublas"):
        check_policy(symbols, EMPTY, [Library.CUDNN])


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
    check_policy(symbols_of(source), Symbols(frozenset(), frozenset(), frozenset({"printf", "_Znwm"})), ())


@pytest.mark.parametrize(
    ("definition", "symbol"),
    [
        ("void launch_gpu_implementation(void*, void*, long, float) {}", WANTED),
        ('extern "C" void launch_gpu_implementation(void*, void*, long, float) {}', "launch_gpu_implementation"),
        (
            "void launch_gpu_implementation(float*, const void*, long, float) {}",
            "_Z25launch_gpu_implementationPfPKvlf",
        ),
        (
            "void launch_gpu_implementation(void*, void*, long long, float) {}",
            "_Z25launch_gpu_implementationPvS_xf",
        ),
    ],
)
def test_compatible_launchers_match(toolchain: Toolchain, symbols_of: Compile, definition: str, symbol: str) -> None:
    match = match_launcher(toolchain, symbols_of(definition), WANTED, DECLARATION)
    assert (match.symbol, match.wanted) == (symbol, WANTED)


@pytest.mark.parametrize(
    "definition",
    [
        "void launch_gpu_implementation(void*, void*, int, float) {}",
        "void launch_gpu_implementation(void*, void*, long, double) {}",
        "void launch_gpu_implementation(void*, void*, long) {}",
        "void launch_gpu_implementation_v2(void*, void*, long, float) {}",
        "int unrelated;",
    ],
)
def test_a_wrong_signature_shows_the_right_one(toolchain: Toolchain, symbols_of: Compile, definition: str) -> None:
    with pytest.raises(BuildFailure) as failure:
        match_launcher(toolchain, symbols_of(definition), WANTED, DECLARATION)
    assert failure.value.kind is BuildFailureKind.LINK
    assert DECLARATION in failure.value.reason
