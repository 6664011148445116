// Prefix sums and the like along rows.
#pragma once
#include <kernelblaster/kernels/reduce.cuh>

// A product that has reached zero stays zero, even where what follows overflows by itself.
struct Times {
    static constexpr float NEUTRAL = 1.0f;
    __device__ float operator()(float before, float after) const { return before == 0.0f ? 0.0f : before * after; }
};

// Inclusive scan over the threads of a block of THREADS, by doubling strides in shared memory.
template <typename Operation>
__device__ float block_scan(float value, Operation operation) {
    __shared__ float partial[THREADS];
    partial[threadIdx.x] = value;
    __syncthreads();
    for (int offset = 1; offset < THREADS; offset *= 2) {
        const float before = threadIdx.x >= offset ? partial[threadIdx.x - offset] : Operation::NEUTRAL;
        __syncthreads();
        partial[threadIdx.x] = operation(before, partial[threadIdx.x]);
        __syncthreads();
    }
    return partial[threadIdx.x];
}

// One block per row, which scans chunk after chunk and carries the result.
template <typename Operation, typename Row>
__global__ void scan_rows_kernel(int64_t rows, int64_t extent, Operation operation, Row row) {
    __shared__ float carry;
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        if (threadIdx.x == 0) carry = Operation::NEUTRAL;
        for (int64_t start = 0; start < extent; start += THREADS) {
            const int64_t i = start + threadIdx.x;
            const float scanned = block_scan(i < extent ? row.load(r, i) : Operation::NEUTRAL, operation);
            const float result = operation(carry, scanned);
            if (i < extent) row.store(r, i, result);
            __syncthreads();
            if (threadIdx.x == THREADS - 1) carry = result;
            __syncthreads();
        }
    }
}

// Inclusive scan of every row: `float row.load(r, i)` gives the elements in the order in which they are scanned, and
// `row.store(r, i, result)` takes what the first i + 1 of them give.
template <typename Operation, typename Row>
static void scan_rows(int64_t rows, int64_t extent, Operation operation, Row row) {
    scan_rows_kernel<<<blocks_for(rows, 1), THREADS>>>(rows, extent, operation, row);
    check(cudaGetLastError());
}
