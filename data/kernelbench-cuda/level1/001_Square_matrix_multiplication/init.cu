// C = A B: one output per thread, 16 x 16 tiles staged in shared memory.
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

constexpr int TILE = 16;

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__global__ void matmul_kernel(scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t n) {
    __shared__ float a_tile[TILE][TILE];
    __shared__ float b_tile[TILE][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int64_t row = static_cast<int64_t>(blockIdx.y) * TILE + ty;
    const int64_t col = static_cast<int64_t>(blockIdx.x) * TILE + tx;

    float sum = 0.0f;
    for (int64_t k0 = 0; k0 < n; k0 += TILE) {
        a_tile[ty][tx] = row < n && k0 + tx < n ? to_float(A[row * n + k0 + tx]) : 0.0f;
        b_tile[ty][tx] = k0 + ty < n && col < n ? to_float(B[(k0 + ty) * n + col]) : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; ++k) sum += a_tile[ty][k] * b_tile[k][tx];
        __syncthreads();
    }
    if (row < n && col < n) C[row * n + col] = from_float(sum);
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    const int64_t tiles = (n + TILE - 1) / TILE;
    matmul_kernel<<<dim3(tiles, tiles), dim3(TILE, TILE)>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(A), static_cast<const scalar_t*>(B), n);
    check(cudaGetLastError());
}
