// Prefix sums: one block per row, chunk after chunk, warp scans.
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

constexpr int THREADS = 256;

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ float warp_scan(float value) {
    const int lane = threadIdx.x % 32;
    for (int offset = 1; offset < 32; offset *= 2) {
        const float other = __shfl_up_sync(0xffffffff, value, offset);
        if (lane >= offset) value += other;
    }
    return value;
}

__global__ void cumsum_kernel(scalar_t* output, const scalar_t* x, int64_t dim) {
    __shared__ float totals[THREADS / 32];
    const scalar_t* row = x + blockIdx.x * dim;
    scalar_t* out = output + blockIdx.x * dim;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float carry = 0.0f;
    for (int64_t start = 0; start < dim; start += THREADS) {
        const int64_t i = start + threadIdx.x;
        const float scanned = warp_scan(i < dim ? to_float(row[i]) : 0.0f);
        if (lane == 31) totals[warp] = scanned;
        __syncthreads();
        float before = 0.0f, all = 0.0f;
        for (int w = 0; w < THREADS / 32; ++w) {
            if (w == warp) before = all;
            all += totals[w];
        }
        if (i < dim) out[i] = from_float(carry + (before + scanned));
        carry += all;
        __syncthreads();
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    cumsum_kernel<<<batch_size, THREADS>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim);
    check(cudaGetLastError());
}
