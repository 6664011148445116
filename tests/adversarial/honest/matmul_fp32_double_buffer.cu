// problem: level1/1
// does: fp32, 128 x 128 tiles, 8 x 8 outputs per thread, the next tile waits in registers while this one is used
// emulated: correct
// cuda: correct
// precision: fp32
// size: medium
#include <kernelblaster/scalar.cuh>

#define BM 128
#define BN 128
#define BK 8
#define OFFSET(row, col, ld) ((row) * (ld) + (col))

__global__ void __launch_bounds__(256) sgemm(float* __restrict__ C, const float* __restrict__ A, const float* __restrict__ B, int64_t n) {
    __shared__ float s_a[2][BK][BM + 4];
    __shared__ float s_b[2][BK][BN];
    const int tid = threadIdx.x, tx = tid % 16, ty = tid / 16;
    const int64_t by = int64_t(blockIdx.y) * BM, bx = int64_t(blockIdx.x) * BN;
    float next_a[4], next_b[4], acc[8][8] = {};

    const auto load = [&](int64_t k0) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int64_t r = by + tid / 2, k = k0 + tid % 2 * 4 + i;
            next_a[i] = r < n && k < n ? A[OFFSET(r, k, n)] : 0.0f;
            const int64_t kb = k0 + tid / 32, c = bx + tid % 32 * 4 + i;
            next_b[i] = kb < n && c < n ? B[OFFSET(kb, c, n)] : 0.0f;
        }
    };
    const auto put = [&](int buffer) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            s_a[buffer][tid % 2 * 4 + i][tid / 2] = next_a[i];
            s_b[buffer][tid / 32][tid % 32 * 4 + i] = next_b[i];
        }
    };

    load(0);
    put(0);
    __syncthreads();
    int buffer = 0;
    for (int64_t k0 = 0; k0 < n; k0 += BK) {
        const bool more = k0 + BK < n;
        if (more) load(k0 + BK);
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a[8], b[8];
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                a[i] = s_a[buffer][k][ty * 8 + i];
                b[i] = s_b[buffer][k][tx + 16 * i];
            }
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) acc[i][j] = fmaf(a[i], b[j], acc[i][j]);
        }
        if (more) put(buffer ^ 1);
        __syncthreads();
        buffer ^= 1;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const int64_t r = by + ty * 8 + i, c = bx + tx + 16 * j;
            if (r < n && c < n) C[OFFSET(r, c, n)] = acc[i][j];
        }
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    sgemm<<<dim3(unsigned((n + BN - 1) / BN), unsigned((n + BM - 1) / BM)), 256>>>(
        static_cast<float*>(output), static_cast<const float*>(A), static_cast<const float*>(B), n);
}
