#include <kernelblaster/scalar.cuh>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

// Adds the part [k0, k1) of the product to what the output holds (or to nothing).
__global__ void matmul_kernel(scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t m, int64_t k, int64_t n, int64_t k0,
                              int64_t k1, bool add) {
    const int64_t row = int64_t(blockIdx.y) * 16 + threadIdx.y, column = int64_t(blockIdx.x) * 16 + threadIdx.x;
    if (row >= m || column >= n) return;
    float sum = add ? to_float(C[row * n + column]) : 0.0f;
    for (int64_t i = k0; i < k1; ++i) sum += to_float(A[row * k + i]) * to_float(B[i * n + column]);
    C[row * n + column] = from_float(sum);
}

static dim3 grid_of(int64_t m, int64_t n) {
    return dim3(static_cast<unsigned>((n + 15) / 16), static_cast<unsigned>((m + 15) / 16));
}

void launch_gpu_implementation(void* C, void* A, void* B, int64_t m, int64_t k, int64_t n) {
    matmul_kernel<<<grid_of(m, n), dim3(16, 16)>>>(static_cast<scalar_t*>(C), static_cast<const scalar_t*>(A),
                                                   static_cast<const scalar_t*>(B), m, k, n, 0, k, false);
    check(cudaGetLastError());
}
