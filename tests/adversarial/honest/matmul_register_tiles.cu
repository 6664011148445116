// problem: level1/1
// does: 64 x 64 tiles, 4 x 4 outputs per thread
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

constexpr int T = 64, K = 16;

__global__ void __launch_bounds__(256) matmul(scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t n) {
    __shared__ float a[K][T + 1], b[K][T];
    const int t = threadIdx.x, tx = t % 16, ty = t / 16;
    const int64_t row0 = int64_t(blockIdx.y) * T, col0 = int64_t(blockIdx.x) * T;
    float sum[4][4] = {};
    for (int64_t k0 = 0; k0 < n; k0 += K) {
        for (int i = t; i < T * K; i += 256) {
            const int64_t row = row0 + i / K, k = k0 + i % K;
            a[i % K][i / K] = row < n && k < n ? to_float(A[row * n + k]) : 0.0f;
        }
        for (int i = t; i < T * K; i += 256) {
            const int64_t k = k0 + i / T, col = col0 + i % T;
            b[i / T][i % T] = k < n && col < n ? to_float(B[k * n + col]) : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < K; ++k) {
            for (int i = 0; i < 4; ++i) {
                for (int j = 0; j < 4; ++j) sum[i][j] = fmaf(a[k][ty * 4 + i], b[k][tx * 4 + j], sum[i][j]);
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
            const int64_t row = row0 + ty * 4 + i, col = col0 + tx * 4 + j;
            if (row < n && col < n) C[row * n + col] = from_float(sum[i][j]);
        }
    }
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    const unsigned tiles = unsigned((n + T - 1) / T);
    matmul<<<dim3(tiles, tiles), 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(A),
                                        static_cast<const scalar_t*>(B), n);
}
