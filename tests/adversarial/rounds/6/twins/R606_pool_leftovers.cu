#include <kernelblaster/scalar.cuh>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

constexpr int TILE = 16;

__global__ void product_kernel(scalar_t* output, const scalar_t* a, const scalar_t* b, int64_t m, int64_t k, int64_t n) {
    __shared__ float a_tile[TILE][TILE + 1], b_tile[TILE][TILE + 1];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int64_t across = (n + TILE - 1) / TILE;
    const int64_t row0 = blockIdx.x / across * TILE, column0 = blockIdx.x % across * TILE;
    const int64_t row = row0 + ty, column = column0 + tx, index = row * n + column;
    const bool inside = row < m && column < n;
    float sum = 0.0f;
    for (int64_t k0 = 0; k0 < k; k0 += TILE) {
        a_tile[ty][tx] = row < m && k0 + tx < k ? to_float(a[row * k + k0 + tx]) : 0.0f;
        b_tile[ty][tx] = k0 + ty < k && column < n ? to_float(b[(k0 + ty) * n + column]) : 0.0f;
        __syncthreads();
#pragma unroll
        for (int p = 0; p < TILE; ++p) sum += a_tile[ty][p] * b_tile[p][tx];
        __syncthreads();
    }
    if (inside) output[index] = from_float(sum);
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t m, int64_t k, int64_t n) {
    const int64_t blocks = (m + TILE - 1) / TILE * ((n + TILE - 1) / TILE);
    product_kernel<<<static_cast<unsigned>(blocks), dim3(TILE, TILE)>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(A), static_cast<const scalar_t*>(B), m, k, n);
    check(cudaGetLastError());
}
