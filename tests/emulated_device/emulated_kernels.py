"""Small CUDA kernels in pairs of which one is known to be faster, and the driver that calls them."""

from __future__ import annotations

DRIVER = """
#include <kernelblaster/driver.hpp>
void launch_gpu_implementation(void* output, void* x, int64_t n);
static void call(kb::Driver& d) { launch_gpu_implementation(d.output("output"), d.input("x"), d.size("n")); }
KB_DRIVER(call)
"""

COPY = """
__global__ void copy(const float* x, float* y, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
void launch_gpu_implementation(void* output, void* x, int64_t n) {
    copy<<<(n * n + 255) / 256, 256>>>((const float*)x, (float*)output, n * n);
}
"""

COPY_WIDE = """
__global__ void copy(const float4* x, float4* y, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
void launch_gpu_implementation(void* output, void* x, int64_t n) {
    copy<<<(n * n / 4 + 255) / 256, 256>>>((const float4*)x, (float4*)output, n * n / 4);
}
"""

COPY_STRIDED = """
__global__ void copy(const float* x, float* y, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    long row = i % n, column = i / n;
    if (i < n * n) y[row * n + column] = x[row * n + column];
}
void launch_gpu_implementation(void* output, void* x, int64_t n) {
    copy<<<(n * n + 255) / 256, 256>>>((const float*)x, (float*)output, n);
}
"""

_TRANSPOSE = """
__global__ void transpose(const float* x, float* y, int n) {
    __shared__ float tile[32][32 + PADDING];
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = x[(row + k) * n + column];
    __syncthreads();
    column = blockIdx.y * 32 + threadIdx.x;
    row = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) y[(row + k) * n + column] = tile[threadIdx.x][threadIdx.y + k];
}
void launch_gpu_implementation(void* output, void* x, int64_t n) {
    transpose<<<dim3(n / 32, n / 32), dim3(32, 8)>>>((const float*)x, (float*)output, n);
}
"""
TRANSPOSE_CONFLICTED = _TRANSPOSE.replace("PADDING", "0")
TRANSPOSE_PADDED = _TRANSPOSE.replace("PADDING", "1")

SQUARE_NAIVE = """
__global__ void square(const float* x, float* y, int n) {
    int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += x[row * n + k] * x[k * n + column];
    y[row * n + column] = sum;
}
void launch_gpu_implementation(void* output, void* x, int64_t n) {
    square<<<dim3(n / 16, n / 16), dim3(16, 16)>>>((const float*)x, (float*)output, n);
}
"""

SQUARE_TILED = """
__global__ void square(const float* x, float* y, int n) {
    __shared__ float a[32][32], b[32][32];
    int tx = threadIdx.x, ty = threadIdx.y;
    int column = blockIdx.x * 32 + tx, row = blockIdx.y * 32 + ty * 4;
    float sum[4] = {0, 0, 0, 0};
    for (int t = 0; t < n; t += 32) {
        for (int r = 0; r < 4; r++) {
            a[ty * 4 + r][tx] = x[(row + r) * n + t + tx];
            b[ty * 4 + r][tx] = x[(t + ty * 4 + r) * n + column];
        }
        __syncthreads();
        for (int k = 0; k < 32; k++) {
            float right = b[k][tx];
            for (int r = 0; r < 4; r++) sum[r] += a[ty * 4 + r][k] * right;
        }
        __syncthreads();
    }
    for (int r = 0; r < 4; r++) y[(row + r) * n + column] = sum[r];
}
void launch_gpu_implementation(void* output, void* x, int64_t n) {
    square<<<dim3(n / 32, n / 32), dim3(32, 8)>>>((const float*)x, (float*)output, n);
}
"""

OUT_OF_BOUNDS = """
__global__ void copy(const float* x, float* y, long n) { y[threadIdx.x] = x[n * n * 4096 + threadIdx.x]; }
void launch_gpu_implementation(void* output, void* x, int64_t n) {
    copy<<<1, 32>>>((const float*)x, (float*)output, n);
}
"""

NOT_EMULATABLE = """
__global__ void copy(const float* x, float* y) {
    asm volatile("multimem.red.global.add.u32 [%0], 1;" :: "l"(0L) : "memory");
    y[threadIdx.x] = x[threadIdx.x];
}
void launch_gpu_implementation(void* output, void* x, int64_t n) {
    copy<<<1, 32>>>((const float*)x, (float*)output);
}
"""

PROBE_CALLS = {
    "copy_scalar": "copy_scalar<<<(1 << 26) / 256, 256>>>((float*)x, (float*)output, 1L << 26);",
    "transpose_conflict": "transpose_conflict<<<dim3(256, 256), dim3(32, 8)>>>((float*)x, (float*)output, 8192);",
    "softmax_row": "softmax_row<<<1024, 256>>>((__half*)x, (__half*)output, 16384);",
}
"""Launches of the probe that Nsight Compute profiled on an H200, for an 8192 x 8192 float input."""


def probe_candidate(probe: str, kernel: str) -> str:
    """A candidate that launches one kernel of the probe program's source."""
    kernels = probe[: probe.index("__global__ void oob")].replace("#include <cuda_profiler_api.h>", "")
    return f"{kernels}\nvoid launch_gpu_implementation(void* output, void* x, int64_t n) {{ {PROBE_CALLS[kernel]} }}\n"
