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
    const int tx = threadIdx.x % TILE, ty = threadIdx.x / TILE;
    const int64_t row0 = static_cast<int64_t>(blockIdx.y) * TILE, col = static_cast<int64_t>(blockIdx.x) * TILE + tx;
    float sum[4] = {};
    for (int64_t k0 = 0; k0 < n; k0 += TILE) {
        for (int r = ty; r < TILE; r += 8) {
            a[r][tx] = row0 + r < n && k0 + tx < n ? to_float(A[(row0 + r) * n + k0 + tx]) : 0.0f;
            b[r][tx] = k0 + r < n && col < n ? to_float(B[(k0 + r) * n + col]) : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < TILE; ++k)
            for (int i = 0; i < 4; ++i) sum[i] += a[ty + 8 * i][k] * b[k][tx];
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        if (row0 + ty + 8 * i < n && col < n) C[(row0 + ty + 8 * i) * n + col] = from_float(sum[i]);
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    const unsigned tiles = (n + TILE - 1) / TILE;
    matmul_kernel<<<dim3(tiles, tiles), THREADS>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(A),
                                                  static_cast<const scalar_t*>(B), n);
    check(cudaGetLastError());
}
