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

constexpr int TILE = 32, THREADS = 256;

__global__ void matmul_kernel(scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t n) {
    __shared__ float a[TILE][TILE + 1], b[TILE][TILE + 1];
    const int64_t across = (n + TILE - 1) / TILE, row0 = blockIdx.x / across * TILE, col0 = blockIdx.x % across * TILE;
    const int tx = threadIdx.x % TILE, ty = threadIdx.x / TILE;
    float sums[TILE * TILE / THREADS] = {};
    for (int64_t k0 = 0; k0 < n; k0 += TILE) {
        for (int i = ty; i < TILE; i += THREADS / TILE) {
            a[i][tx] = row0 + i < n && k0 + tx < n ? to_float(A[(row0 + i) * n + k0 + tx]) : 0.0f;
            b[i][tx] = k0 + i < n && col0 + tx < n ? to_float(B[(k0 + i) * n + col0 + tx]) : 0.0f;
        }
        __syncthreads();
        const int most = static_cast<int>(min(static_cast<int64_t>(TILE), n - k0));
        for (int k = 0; k < most; ++k) {
            for (int j = 0; j < TILE * TILE / THREADS; ++j) sums[j] += a[ty + j * (THREADS / TILE)][k] * b[k][tx];
        }
        __syncthreads();
    }
    for (int j = 0; j < TILE * TILE / THREADS; ++j) {
        const int i = ty + j * (THREADS / TILE);
        if (row0 + i < n && col0 + tx < n) C[(row0 + i) * n + col0 + tx] = from_float(sums[j]);
    }
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    const int64_t across = (n + TILE - 1) / TILE;
    matmul_kernel<<<across * across, THREADS>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(A), static_cast<const scalar_t*>(B), n);
    check(cudaGetLastError());
}
