"""The rules for object files, on real objects from the host compiler."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelblaster.devices.build.elf import Symbols, check_shared_object, read_symbols
from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.facts import Library
from kernelblaster.devices.failures import BuildFailure, BuildFailureKind
from kernelblaster.evaluation.integrity.symbol_rules import check_symbols, own_streams

EMPTY = Symbols(frozenset(), frozenset(), frozenset())
Compile = Callable[[str], Symbols]


@pytest.fixture(scope="module")
def toolchain() -> Toolchain:
    return Toolchain.find()


@pytest.fixture
def symbols_of(tmp_path: Path) -> Compile:
    toolchain = Toolchain.find()

    def build(source: str) -> Symbols:
        (tmp_path / "a.cpp").write_text(source)
        subprocess.run(
            [str(toolchain.host_compiler), "-std=c++17", "-O1", "-c", "a.cpp", "-o", "a.o"], cwd=tmp_path, check=True
        )
        return read_symbols(tmp_path / "a.o")

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
def test_without_containment_what_no_kernel_needs_is_refused_by_name(
    symbols_of: Compile, source: str, named: str
) -> None:
    harness = Symbols(frozenset({"main"}), frozenset({"main"}), frozenset({"memcpy", "cudaMalloc"}))
    with pytest.raises(BuildFailure) as failure:
        check_symbols(symbols_of(source), harness, (), contained=False)
    assert failure.value.kind is BuildFailureKind.POLICY
    assert named in failure.value.log


def test_an_allowed_library_may_be_asked_for(symbols_of: Compile) -> None:
    symbols = symbols_of('extern "C" int cublasCreate_v2(void*); int f() { return cublasCreate_v2(0); }')
    check_symbols(symbols, EMPTY, [Library.CUBLAS], contained=True)
    with pytest.raises(BuildFailure, match="cublas"):
        check_symbols(symbols, EMPTY, [Library.CUDNN], contained=True)


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
    harness = Symbols(frozenset(), frozenset(), frozenset({"printf", "_Znwm"}))
    for contained in (True, False):
        assert check_symbols(symbols_of(source), harness, (), contained=contained) == ()


@pytest.mark.parametrize(
    "source",
    [
        '#include <fstream>\nvoid f() { std::ifstream("x"); }',
        '#include <cstdlib>\nchar* f() { return getenv("X"); }',
        "#include <unistd.h>\nvoid f() { fork(); }",
    ],
)
def test_what_fails_where_a_candidate_is_contained_is_a_hint(symbols_of: Compile, source: str) -> None:
    assert len(check_symbols(symbols_of(source), EMPTY, (), contained=True)) > 0


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("cudaStreamCreate", True), ("cudaStreamCreate_ptsz", True), ("cudaStreamCreateWithFlags", True),
        ("cuStreamCreateWithPriority", True), ("cuGetProcAddress_v2", True), ("cudaLaunchKernel_ptsz", True),
        ("cudaMemcpy_ptds", True), ("cudaLaunchKernel", False), ("cudaStreamSynchronize", False),
        ("cudaGraphLaunch", False), ("cudaGetDriverEntryPointByVersion", False), ("current_ptsz", False),
    ],
)  # fmt: skip
def test_streams_of_its_own_are_told_by_what_an_object_asks_for(symbols_of: Compile, name: str, is_one: bool) -> None:
    symbols = symbols_of(f'extern "C" int {name}(); int f() {{ return {name}(); }}')
    assert own_streams(symbols) == ((name,) if is_one else ())


@pytest.mark.parametrize("name", ["cudaProfilerStop", "cudaLaunchHostFunc", "cudnnCreate", "ptxemu_reports"])
def test_what_reaches_into_the_measurement_is_refused_everywhere(symbols_of: Compile, name: str) -> None:
    symbols = symbols_of(f'extern "C" int {name}(); int f() {{ return {name}(); }}')
    with pytest.raises(BuildFailure) as failure:
        check_symbols(symbols, EMPTY, (), contained=True)
    assert failure.value.kind is BuildFailureKind.POLICY


@pytest.mark.parametrize(("name", "instead"), [("cudaLaunchHostFunc", "launcher"), ("GOMP_parallel", "one thread")])
def test_who_is_refused_for_what_honest_kernels_do_hears_what_to_do_instead(
    symbols_of: Compile, name: str, instead: str
) -> None:
    symbols = symbols_of(f'extern "C" int {name}(); int f() {{ return {name}(); }}')
    with pytest.raises(BuildFailure, match=instead):
        check_symbols(symbols, EMPTY, (), contained=True)


@pytest.mark.parametrize(
    "name", ["_Z25launch_gpu_implementationPvS_lf\\n0000 T other", "caf\\303\\251", "a b", "\\377\\376"]
)
def test_odd_names_are_cleaned(symbols_of: Compile, name: str) -> None:
    found = symbols_of(f'__asm__(".globl \\"{name}\\"\\n.text\\n\\"{name}\\": ret");')
    (only,) = found.defined
    assert only.isascii()
    assert only.isprintable()


@pytest.mark.parametrize(
    ("source", "flags"),
    [
        ("__attribute__((constructor)) static void f() {}", ()),
        ("extern \"C\" { static int g() { return 1; } static void* pick() { return (void*)g; } "
         "int h() __attribute__((ifunc(\"pick\"))); }", ("-nostartfiles",)),
        ("int a;", ()),
    ],
)  # fmt: skip
def test_what_the_dynamic_linker_would_run_is_refused(
    toolchain: Toolchain, tmp_path: Path, source: str, flags: tuple[str, ...]
) -> None:
    """The last one holds the start files' own initialisers."""
    (tmp_path / "a.cpp").write_text(source)
    made = tmp_path / "a.so"
    subprocess.run([toolchain.host_compiler, "-shared", "-fPIC", *flags, tmp_path / "a.cpp", "-o", made], check=True)
    with pytest.raises(BuildFailure) as failure:
        check_shared_object(made)
    assert failure.value.kind is BuildFailureKind.POLICY


def test_a_plain_shared_object_is_accepted(toolchain: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text("int a;")
    made = tmp_path / "a.so"
    subprocess.run(
        [toolchain.host_compiler, "-shared", "-fPIC", "-nostartfiles", tmp_path / "a.cpp", "-o", made], check=True
    )
    check_shared_object(made)
    made.write_bytes(b"garbage")
    with pytest.raises(BuildFailure):
        check_shared_object(made)
