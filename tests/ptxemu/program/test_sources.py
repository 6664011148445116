"""Programs of several files, with flags of nvcc; what is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulator_support import needs_tools

import ptxemu
from ptxemu.command import main
from ptxemu.program.source import ProgramSource

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
    command = [str(paths[0]), *(word for path in paths[1:] for word in ("--with", str(path)))]
    flags = ["--nvcc", "-rdc=true -DN=8", "--nvcc=-lm --expt-relaxed-constexpr"]
    assert main([*command, *flags]) == 0
    again = ptxemu.build(*paths, nvcc_flags=["-rdc=true", "-DN=8", "-lm", "--expt-relaxed-constexpr"])
    assert [launch.block for launch in ptxemu.run(again).launches] == [(8, 1, 1)]
    paths[2].write_text(DEVICE.replace("2 *", "3 *"), encoding="utf-8")
    assert main([*command, *flags]) == 1


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


@pytest.mark.parametrize("flag", ["-arch=sm_80", "-o", "-gencode=arch=compute_80,code=sm_80", "-ptx", "kernels.cu"])
def test_flags_that_are_not_to_be_given(tmp_path: Path, flag: str) -> None:
    (tmp_path / "a.cu").touch()
    with pytest.raises(ptxemu.InvalidInput):
        ProgramSource.of([tmp_path / "a.cu"], [flag])


def test_libraries_without_ptx_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.cu").touch()
    with pytest.raises(ptxemu.ProgramNotEmulatable, match="cublas"):
        ProgramSource.of([tmp_path / "a.cu"], ["-lcublas"])


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
