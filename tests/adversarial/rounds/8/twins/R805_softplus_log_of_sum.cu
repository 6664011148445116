// problem: level1/29
// precision: bf16
// kind: honest
// expects: softplus by log1p(exp(x)), four elements per thread. Right for all x.
// size: small
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

constexpr int THREADS = 256, EACH = 4;

__device__ __forceinline__ float softplus(float v) {
    return v > 20.0f ? v : log1pf(expf(v));
}

__global__ void softplus_kernel(scalar_t* output, const scalar_t* x, int64_t count) {
    const int64_t first = static_cast<int64_t>(blockIdx.x) * (THREADS * EACH) + threadIdx.x;
    if (first + (EACH - 1) * THREADS < count) {
        float values[EACH];
#pragma unroll
        for (int j = 0; j < EACH; ++j) values[j] = to_float(x[first + j * THREADS]);
#pragma unroll
        for (int j = 0; j < EACH; ++j) output[first + j * THREADS] = from_float(softplus(values[j]));
    } else {
        for (int64_t i = first; i < count; i += THREADS) output[i] = from_float(softplus(to_float(x[i])));
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const int64_t count = batch_size * dim;
    softplus_kernel<<<(count + THREADS * EACH - 1) / (THREADS * EACH), THREADS>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), count);
    check(cudaGetLastError());
}
