"""What a person is told of a source."""

from __future__ import annotations

import pytest

from kernelblaster.evaluation.integrity.source_hints import hints

HONEST = r"""
#include <kernelblaster/scalar.cuh>
// system("rm"); getenv in a comment, and a "quote
/* __attribute__((constructor)) */
static __device__ float twice(float x) { return 2 * x; }
__global__ void k(scalar_t* out, const scalar_t* x, int64_t n) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(0), "l"(x));
    if (threadIdx.x == 1'000) printf("system(1) // not a comment");
}
void launch_gpu_implementation(void* output, void* x, int64_t n) { k<<<1, 256>>>((scalar_t*)output, (scalar_t*)x, n); }
"""


def test_an_honest_kernel_raises_no_hint() -> None:
    assert hints(HONEST) == []


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ('system("ls");', "processes"),
        ('const char* p = "//"; system("ls");', "processes"),
        ('auto v = std::getenv("HOME");', "environment"),
        ("__attribute__((constructor)) void f() {}", "before or after main"),
        ('void* h = dlopen("libcuda.so", 1);', "loads code"),
        ("std::thread t(f);", "threads"),
        ("cudaGraphLaunch(graph, 0);", "graphs"),
        ("cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);", "streams"),
        ("#define KB_DRIVER(x)", "harness"),
        ("static float* cache = nullptr;", "static host state"),
        ('auto r = R"(a)"; fork();', "processes"),
        ('sys\\\ntem("ls");', "processes"),
    ],
)
def test_suspicious_lines_are_named(line: str, word: str) -> None:
    assert any(word in hint for hint in hints(line)), hints(line)
