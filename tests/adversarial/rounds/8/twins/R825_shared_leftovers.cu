// problem: level1/10
// precision: fp16
// kind: honest
// expects: stages B in shared memory in each block, whole, and multiplies four rows of A with it; correct.
// size: small
#include <kernelblaster/kernels/matmul.cuh>

constexpr int ROWS = 4, THREADS_HERE = 128;

// ROWS rows of A a block, B in shared memory; threads go along columns.
__global__ void __launch_bounds__(THREADS_HERE) staged_kernel(scalar_t* C, const scalar_t* A, const scalar_t* B,
                                                              int rows, int k, int n) {
    extern __shared__ __align__(16) unsigned left[];
    scalar_t* b = reinterpret_cast<scalar_t*>(left);
    const int count = k * n;
    for (int i = threadIdx.x; i < count; i += THREADS_HERE) b[i] = B[i];
    __syncthreads();
    const int row0 = blockIdx.x * ROWS;
    for (int column = threadIdx.x; column < n; column += THREADS_HERE) {
        float sums[ROWS] = {};
        for (int i = 0; i < k; ++i) {
            const float value = to_float(b[i * n + column]);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                if (row0 + r < rows) sums[r] += value * to_float(A[static_cast<int64_t>(row0 + r) * k + i]);
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            if (row0 + r < rows) C[static_cast<int64_t>(row0 + r) * n + column] = from_float(sums[r]);
        }
    }
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t batch_size, int64_t m, int64_t k, int64_t n) {
    const int64_t rows = batch_size * m, bytes = k * n * static_cast<int64_t>(sizeof(scalar_t));
    if (bytes <= 200 * 1024 && sizeof(scalar_t) == 2) {
        check(cudaFuncSetAttribute(staged_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024));
        staged_kernel<<<static_cast<unsigned>((rows + ROWS - 1) / ROWS), THREADS_HERE, bytes>>>(
            out(output), in(A), in(B), static_cast<int>(rows), static_cast<int>(k), static_cast<int>(n));
        check(cudaGetLastError());
    } else {
        matmul(out(output), Matrix{in(A), k, 1}, Matrix{in(B), n, 1}, Product{rows, n, k});
    }
}
