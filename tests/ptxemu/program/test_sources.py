"""Programs of several files, with flags of nvcc; what is refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from emulator_support import needs_tools

import ptxemu
from ptxemu.command import main, parse_options
from ptxemu.program.build import missing_in
from ptxemu.program.source import ProgramSource
from ptxemu.toolkit import CudaToolkit

KERNELS = """
extern __device__ float twice(float x);
#if N != 8
#error "no flags"
#endif
__global__ void kernel(float* x) { x[threadIdx.x] = twice(x[threadIdx.x]); }
void start(float* x) { kernel<<<1, N>>>(x); }
"""
DEVICE = "__device__ float twice(float x) { return 2 * x; }\n"
HOST = """
#include <cmath>
extern "C" double root(double x) { return std::sqrt(x); }
"""
MAIN = """
#include <cstdlib>
extern "C" double root(double x);
void start(float* x);
int main() {
    float *x, got[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    cudaMalloc(&x, sizeof got);
    cudaMemcpy(x, got, sizeof got, cudaMemcpyHostToDevice);
    start(x);
    cudaMemcpy(got, x, sizeof got, cudaMemcpyDeviceToHost);
    return got[7] == root(256.0) ? 0 : 1;
}
"""


@pytest.mark.nvcc
@needs_tools
def test_files_are_built_together_and_again_when_one_changes(tmp_path: Path) -> None:
    texts = {"main.cu": MAIN, "kernels.cu": KERNELS, "device.cu": DEVICE, "host.cpp": HOST}
    paths = [tmp_path / name for name in texts]
    for path in paths:
        path.write_text(texts[path.name], encoding="utf-8")
    command = [*map(str, paths[:2]), *(word for path in paths[2:] for word in ("--with", str(path)))]
    flags = ["--nvcc", "-rdc=true -DN=8", "--nvcc=-lm --expt-relaxed-constexpr"]
    assert main([*command, *flags]) == 0
    again = ptxemu.build(*paths, nvcc_flags=["-rdc=true", "-DN=8", "-lm", "--expt-relaxed-constexpr"])
    assert [launch.block for launch in ptxemu.run(again).launches] == [(8, 1, 1)]
    paths[2].write_text(DEVICE.replace("2 *", "3 *"), encoding="utf-8")
    assert main([*command, *flags]) == 1


FILES = Path(__file__).with_name("programs") / "files"
LINKED = [str(FILES / "linked_one.cu"), str(FILES / "linked_two.cu")]


@pytest.mark.nvcc
@needs_tools
@pytest.mark.parametrize("checks", [[], ["--checks"]])
def test_device_code_of_files_is_linked(checks: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*LINKED, "--nvcc=-rdc=true", *checks]) == 0
    assert capfd.readouterr().out == "one first\ntwo second\n"


@pytest.mark.nvcc
@needs_tools
def test_files_have_device_code_of_their_own(tmp_path: Path) -> None:
    record = tmp_path / "out.json"
    assert main([str(FILES / "apart_one.cu"), str(FILES / "apart_two.cu"), "--record", str(record)]) == 0
    first, second = ptxemu.RunResult.decoded(json.loads(record.read_text(encoding="utf-8"))).launches
    assert (first.name, first.block[0]) == ("kernel(int*)", 64)
    assert (second.name, second.block[0]) == ("kernel(int*)", 32)
    instructions = "smsp__inst_executed.sum"
    assert first.metrics[instructions] == 2 * second.metrics[instructions]


@pytest.mark.nvcc
@needs_tools
@pytest.mark.parametrize(
    ("files", "flags", "told"),
    [
        (LINKED, [], "-rdc=true"),
        (LINKED[:1], ["--nvcc=-rdc=true"], "weighted"),
        ([*LINKED, "again.cu"], ["--nvcc=-rdc=true"], "weights"),
    ],
)
def test_what_does_not_link_is_told(
    files: list[str], flags: list[str], told: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "again.cu").write_text("__constant__ float weights[4];\n", encoding="utf-8")
    assert main([*(str(tmp_path / file) for file in files), *flags]) == 2
    assert told in capfd.readouterr().err


@pytest.mark.nvcc
@needs_tools
def test_a_program_of_host_files_alone(tmp_path: Path) -> None:
    text = "#include <cuda_runtime_api.h>\nint main() { void* p; return cudaMalloc(&p, 4) || cudaFree(p); }\n"
    (tmp_path / "main.cpp").write_text(text, encoding="utf-8")
    assert main([str(tmp_path / "main.cpp")]) == 0


@pytest.mark.nvcc
@needs_tools
@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("__global__ void child() {}\n__global__ void parent() { child<<<1, 1>>>(); }\nint main() {}", "by kernels"),
        ("#include <cusolver_of_nobody.h>\nint main() {}", "cusolver_of_nobody"),
    ],
)
def test_what_no_compiler_mends_is_named(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "a.cu").write_text(text, encoding="utf-8")
    with pytest.raises(ptxemu.ProgramNotEmulatable, match=named):
        ptxemu.build(tmp_path / "a.cu")


NVRTC = """
#include <cstdio>
#include <cuda.h>
#include <nvrtc.h>
#include <string>
int main() {
    const char* text = "extern \\"C\\" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }";
    const char* flags[] = {"--gpu-architecture=compute_90"};
    nvrtcProgram program;
    int major, minor;
    nvrtcVersion(&major, &minor);
    if (1000 * major + 10 * minor > CUDA_VERSION) return 77;  // ptxas does not know its PTX
    if (nvrtcCreateProgram(&program, text, "twice.cu", 0, nullptr, nullptr)) return 2;
    if (nvrtcCompileProgram(program, 1, flags)) return 2;
    size_t bytes;
    nvrtcGetPTXSize(program, &bytes);
    std::string ptx(bytes, 0);
    nvrtcGetPTX(program, &ptx[0]);
    float *x, host[32];
    for (float& one : host) one = 21;
    cudaMalloc(&x, sizeof host);
    cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
    CUmodule module;
    CUfunction twice;
    void* arguments[] = {&x};
    if (cuModuleLoadData(&module, ptx.c_str()) || cuModuleGetFunction(&twice, module, "twice")) return 3;
    if (cuLaunchKernel(twice, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr)) return 4;
    cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
    return host[31] == 42 ? 0 : 1;
}
"""


@pytest.mark.nvcc
@needs_tools
def test_nvrtc_compiles_kernels_of_a_program_that_runs(tmp_path: Path) -> None:
    library = CudaToolkit.find().library("nvrtc")
    headers = [] if library is None else [library.parent.parent / "include"]
    if not any((folder / "nvrtc.h").is_file() for folder in headers):
        pytest.skip("NVRTC is not installed")
    (tmp_path / "a.cu").write_text(NVRTC, encoding="utf-8")
    program = ptxemu.build(tmp_path / "a.cu", include_dirs=headers, nvcc_flags=["-lnvrtc"])
    result = program.run([], timeout_s=60)
    if result.exit_code == 77:
        pytest.skip("NVRTC is newer than nvcc")
    assert (result.exit_code, [launch.name for launch in result.launches]) == (0, ["twice"])


@pytest.mark.nvcc
@needs_tools
def test_nvrtc_is_named_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(CudaToolkit, "library", lambda self, name: None)
    (tmp_path / "a.cu").write_text("int main() {}", encoding="utf-8")
    assert main([str(tmp_path / "a.cu"), "--nvcc=-lnvrtc"]) == 4
    assert "nvrtc, which is not on this machine" in capfd.readouterr().err


@pytest.mark.parametrize("flag", ["-arch=sm_80", "-o", "-gencode=arch=compute_80,code=sm_80", "-ptx", "kernels.cu"])
def test_flags_that_are_not_to_be_given(tmp_path: Path, flag: str) -> None:
    (tmp_path / "a.cu").touch()
    with pytest.raises(ptxemu.InvalidInput):
        ProgramSource.of([tmp_path / "a.cu"], [flag])


def test_libraries_without_ptx_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.cu").touch()
    with pytest.raises(ptxemu.ProgramNotEmulatable, match="cublas"):
        ProgramSource.of([tmp_path / "a.cu"], ["-lcublas"])


@pytest.mark.parametrize(
    ("flags", "read"),
    [
        (["-maxrregcount", "32"], ("-maxrregcount=32",)),
        (["-D", "N=8", "-I", "a b", "-O3"], ("-DN=8", "-Ia b", "-O3")),
        (["-Xptxas", "-v", "--std", "c++20", "-G"], ("-Xptxas=-v", "--std=c++20", "-G")),
        (["-rdc", "true", "-lineinfo"], ("-lineinfo",)),
    ],
)
def test_values_of_flags_may_stand_behind_a_blank(tmp_path: Path, flags: list[str], read: tuple[str, ...]) -> None:
    (tmp_path / "a.cu").touch()
    source = ProgramSource.of([tmp_path / "a.cu"], flags)
    assert source.compile_flags == read
    assert source.relocatable == ("-rdc" in flags)


def test_words_are_files_by_their_names_and_arguments_behind_dashes() -> None:
    options = parse_options(["a.cu", "7", "b.cpp", "--with", "c.cu", "x", "--", "d.cu", "--json"])
    assert (options.program, options.arguments) == (Path("a.cu"), ("7", "x", "d.cu", "--json"))
    assert options.more == (Path("b.cpp"), Path("c.cu"))


def test_flags_of_nvcc_behind_dashes_are_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "missing.cu"), "--", "-rdc=true"]) == 2
    assert "--nvcc=-rdc=true" in capfd.readouterr().err


def test_flags_go_where_they_belong(tmp_path: Path) -> None:
    (tmp_path / "a.cu").touch()
    source = ProgramSource.of([tmp_path / "a.cu"], ["-lineinfo", "-lm", "-L/opt", "-rdc=true", "-lcudart", "-DX"])
    assert (source.compile_flags, source.link_flags) == (("-lineinfo", "-DX"), ("-lm", "-L/opt"))


def test_files_that_are_none_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.cu").touch()
    (tmp_path / "b.py").touch()
    for other in ("b.py", "missing.cu"):
        with pytest.raises(ptxemu.InvalidInput, match=other):
            ProgramSource.of([tmp_path / "a.cu", tmp_path / other])


@pytest.mark.parametrize(
    ("header", "said"),
    [("cublas_v2.h", "the library of cublas_v2.h"), ("curand_kernel.h", "curand_kernel.h is not installed")],
)
def test_headers_of_libraries_are_told_from_headers_that_kernels_call(header: str, said: str) -> None:
    assert said in (missing_in(f"a.cu:1:10: fatal error: {header}: No such file or directory") or "")
