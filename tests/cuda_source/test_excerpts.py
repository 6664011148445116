"""An excerpt holds the hottest kernel with what it uses, within its length, and nothing of the host."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelblaster.cuda_source.excerpts import kernel_excerpt

OPERANDS = ", ".join(f"%{number}" for number in range(32))
SOURCE = f"""#include <cuda_fp16.h>
#define WIDTH(x) ((x) * LANES)
#define UNUSED 7
namespace {{
constexpr int LANES = 32, TILE = WIDTH(2);
struct Pair {{
    float a, b;
}};
template <int N>
__device__ __forceinline__ float product(float x) {{
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{{OPERANDS}}};" ::"f"(x));
    return x * N;
}}
__device__ float never_called(float x) {{ return x; }}
__global__ void cold(float* out) {{ out[0] = 0; }}
template <int N>
__global__ void __launch_bounds__(TILE, 1) hot(float* __restrict__ out) {{
    Pair pair{{1, 2}};
    out[threadIdx.x] = product<N>(pair.a);
}}
}}  // namespace
void launch_gpu_implementation(void* out) {{ hot<2><<<1, TILE>>>(static_cast<float*>(out)); }}
"""


def test_the_named_kernel_comes_with_what_it_uses_and_without_the_rest() -> None:
    excerpt = kernel_excerpt(SOURCE, "void (anonymous namespace)::hot<2>(float *)", 2000)
    for held in ("hot(float*", "product(float x)", "struct Pair", "LANES = 32", "define WIDTH", "%0, ..., %31"):
        assert held in excerpt
    for left_out in ("cold", "never_called", "launch_gpu_implementation", "UNUSED", "include"):
        assert left_out not in excerpt


@pytest.mark.parametrize("hottest", ["", "some_library_kernel(float *)"])
def test_without_a_known_name_the_longest_kernel_is_taken(hottest: str) -> None:
    assert "hot(float*" in kernel_excerpt(SOURCE, hottest, 2000)


def test_a_source_without_a_kernel_has_none() -> None:
    assert kernel_excerpt("int helper() { return 1; }", "helper", 100) is None


@settings(max_examples=20)
@given(st.integers(60, 1200))
def test_an_excerpt_is_never_longer_than_asked_and_begins_the_kernel(most: int) -> None:
    long = SOURCE.replace("    Pair pair", "    out[1] = 2;\n" * 20 + "    Pair pair")
    assert len(kernel_excerpt(long, "hot", most)) <= most


@settings(max_examples=50)
@given(st.text(alphabet='(){}[];=#"\n <>aA_,', max_size=80))
def test_any_text_is_taken_apart(text: str) -> None:
    kernel_excerpt(f"__global__ void k() {{}}\n{text}", "k", 500)
