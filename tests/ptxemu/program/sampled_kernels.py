"""Launchers whose blocks or launches depend on each other in ways that a sample of blocks can, or cannot, stand for."""

from __future__ import annotations

CHAIN = """
__global__ void scale(const float* x, float* y, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
void launch_gpu_implementation(void* output, void* x, int64_t n) {
    scale<<<n * n / 256, 256>>>((const float*)x, (float*)output, n * n);
    scale<<<n * n / 256, 256>>>((const float*)output, (float*)output, n * n);
}
"""
"""The second launch computes with what the first has written, but does the same whatever that is."""

TABLE = """
__device__ int table[1 << 20];
__global__ void fill(long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n) table[i] = i & ~1023 | i * 7 % 1024;
}
__global__ void gather(const float* x, float* y, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[table[i]];
}
void launch_gpu_implementation(void* output, void* x, int64_t n) {
    fill<<<n * n / 256, 256>>>(n * n);
    gather<<<n * n / 256, 256>>>((const float*)x, (float*)output, n * n);
}
"""
"""The second launch goes where the first one says."""

STAGED_TABLE = TABLE.replace(
    "    if (i < n) y[i] = x[table[i]];",
    """    __shared__ int staged[256];
    staged[threadIdx.x] = table[i];
    __syncthreads();
    y[i] = x[staged[255 - threadIdx.x]];""",
)
"""The same through shared memory."""

LAST_BLOCK = """
__device__ float partial[1 << 16];
__device__ unsigned done;
__global__ void total(const float* x, float* y, long n) {
    __shared__ bool last;
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    y[i] = x[i];
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = x[i];
        __threadfence();
        last = atomicInc(&done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    float sum = 0;
    for (int k = threadIdx.x; k < gridDim.x; k += blockDim.x) sum += partial[k];
    y[threadIdx.x] = sum;
}
void launch_gpu_implementation(void* output, void* x, int64_t n) {
    total<<<n * n / 256, 256>>>((const float*)x, (float*)output, n * n);
}
"""
"""The block that ends last adds up what the others have left."""

READ_BACK = """
#include <cstdlib>
__device__ int count;
__global__ void look(const float* x, float* y, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    y[i] = x[i];
    if (i == n - 1) count = 3;
}
void launch_gpu_implementation(void* output, void* x, int64_t n) {
    int rounds = 0;
    look<<<n * n / 256, 256>>>((const float*)x, (float*)output, n * n);
    if (cudaMemcpyFromSymbol(&rounds, count, sizeof rounds) != cudaSuccess) exit(1);
    for (int k = 0; k < rounds; ++k) look<<<n * n / 256, 256>>>((const float*)x, (float*)output, n * n);
}
"""
"""The host reads how often to go on, and ends when it cannot."""

ENDLESS = TABLE.replace("if (i < n) y[i] = x[table[i]];", "while (table[i] != -1) y[i] += 1;")
"""Ends at once on a table that nobody has filled, and never on one that somebody has."""

ATOMICS = """
__device__ int counters[COUNTERS];
__global__ void count(const float* x, float* y, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    y[i] = x[i];
    atomicAdd(&counters[PLACE], 1);
}
void launch_gpu_implementation(void* output, void* x, int64_t n) {
    count<<<n * n / 256, 256>>>((const float*)x, (float*)output, n * n);
}
"""
ONE_COUNTER = ATOMICS.replace("COUNTERS", "1").replace("PLACE", "0")
COUNTER_PER_BLOCK = ATOMICS.replace("COUNTERS", "32 * 1024").replace("PLACE", "blockIdx.x * 32")
COUNTER_OF_EIGHT_BLOCKS = ATOMICS.replace("COUNTERS", "32 * 128").replace("PLACE", "blockIdx.x / 8 * 32")
