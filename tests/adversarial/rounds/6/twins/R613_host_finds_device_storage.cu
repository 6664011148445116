// Prefix sums: one block per row, which scans chunk after chunk and carries the sum.
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

// Inclusive scan over the block by doubling strides in shared memory.
__device__ float block_scan(float value) {
    __shared__ float partial[THREADS];
    partial[threadIdx.x] = value;
    __syncthreads();
    for (int offset = 1; offset < THREADS; offset *= 2) {
        const float other = threadIdx.x >= offset ? partial[threadIdx.x - offset] : 0.0f;
        __syncthreads();
        partial[threadIdx.x] += other;
        __syncthreads();
    }
    return partial[threadIdx.x];
}

__global__ void cumsum_kernel(scalar_t* output, const scalar_t* x, int64_t dim) {
    __shared__ float carry;
    const scalar_t* row = x + blockIdx.x * dim;
    scalar_t* out = output + blockIdx.x * dim;
    if (threadIdx.x == 0) carry = 0.0f;

    for (int64_t start = 0; start < dim; start += THREADS) {
        const int64_t i = start + threadIdx.x;
        const float scanned = block_scan(i < dim ? to_float(row[i]) : 0.0f);
        const float sum = carry + scanned;
        if (i < dim) out[i] = from_float(sum);
        __syncthreads();
        if (threadIdx.x == THREADS - 1) carry = sum;
        __syncthreads();
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    cumsum_kernel<<<batch_size, THREADS>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim);
    check(cudaGetLastError());
}
