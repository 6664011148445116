// C = diag(A) B: one element per thread, one row of blocks per matrix row.
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__global__ void scale_rows_kernel(scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t m) {
    const int64_t row = blockIdx.y;
    const int64_t col = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (col < m) C[row * m + col] = from_float(to_float(A[row]) * to_float(B[row * m + col]));
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n, int64_t m) {
    const int threads = 256;
    const dim3 blocks((m + threads - 1) / threads, n);
    scale_rows_kernel<<<blocks, threads>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(A), static_cast<const scalar_t*>(B), m);
    check(cudaGetLastError());
}
