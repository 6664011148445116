#include <kernelblaster/kernels/launch.cuh>
#include <cuda_bf16.h>

constexpr int TILE = 64, STEP = 32, PITCH = STEP + 8, PLANES = 3;

__device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

using Part = __nv_bfloat16;

// Four threads bring a row of 32, each number as three of bf16: all of its 24 bits.
__device__ __forceinline__ void load(Part (&to)[PLANES][TILE * PITCH], const float* from, int64_t r0, int64_t rows, int64_t k0, int64_t k) {
    for (int r = threadIdx.x / 4; r < TILE; r += 32) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int64_t column = k0 + i * 4 + threadIdx.x % 4;
            float rest = r0 + r < rows && column < k ? from[(r0 + r) * k + column] : 0.0f;
            const int at = r * PITCH + i * 4 + threadIdx.x % 4;
#pragma unroll
            for (int p = 0; p < PLANES; ++p) {
                to[p][at] = __float2bfloat16_rn(rest);
                rest -= __bfloat162float(to[p][at]);
            }
        }
    }
}

// C = A B^T, a tile of 64 x 64 per block, 32 x 32 per warp; steps of 32 are added in fp32.
__global__ void __launch_bounds__(128) product_kernel(float* C, const float* A, const float* B, int64_t m, int64_t k, int64_t n) {
    __shared__ __align__(16) Part tiles[2][PLANES][TILE * PITCH];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const int64_t m0 = static_cast<int64_t>(blockIdx.y) * TILE, n0 = static_cast<int64_t>(blockIdx.x) * TILE;
    const int wm = warp / 2 * 32, wn = warp % 2 * 32;
    float sums[2][4][4] = {};
    for (int64_t k0 = 0; k0 < k; k0 += STEP) {
        __syncthreads();
        load(tiles[0], A, m0, m, k0, k);
        load(tiles[1], B, n0, n, k0, k);
        __syncthreads();
        float part[2][4][4] = {};
        for (int kk = 0; kk < STEP; kk += 16) {
            unsigned b[4][PLANES][2];
#pragma unroll
            for (int j = 0; j < 4; ++j)
#pragma unroll
                for (int p = 0; p < PLANES; ++p) {
                    const Part* from = &tiles[1][p][(wn + j * 8 + g) * PITCH + kk + t * 2];
                    b[j][p][0] = *reinterpret_cast<const unsigned*>(from);
                    b[j][p][1] = *reinterpret_cast<const unsigned*>(from + 8);
                }
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                unsigned a[PLANES][4];
#pragma unroll
                for (int p = 0; p < PLANES; ++p) {
                    const Part* from = &tiles[0][p][(wm + i * 16 + g) * PITCH + kk + t * 2];
                    a[p][0] = *reinterpret_cast<const unsigned*>(from);
                    a[p][1] = *reinterpret_cast<const unsigned*>(from + 8 * PITCH);
                    a[p][2] = *reinterpret_cast<const unsigned*>(from + 8);
                    a[p][3] = *reinterpret_cast<const unsigned*>(from + 8 * PITCH + 8);
                }
                // Small products first: planes that add up to PLANES - 1, then less.
#pragma unroll
                for (int both = PLANES - 1; both >= 0; --both)
#pragma unroll
                    for (int p = 0; p <= both; ++p)
#pragma unroll
                        for (int j = 0; j < 4; ++j) mma(part[i][j], a[p], b[j][both - p]);
            }
        }
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e) sums[i][j][e] += part[i][j][e];
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int64_t row = m0 + wm + i * 16 + g + e / 2 * 8, column = n0 + wn + j * 8 + t * 2 + e % 2;
                if (row >= m || column >= n) continue;
                float sum = sums[i][j][e];
                if (!(fabsf(sum) < 3e38f)) {  // not finite, perhaps only on the way: plainly
                    sum = 0.0f;
                    for (int64_t l = 0; l < k; ++l) sum = fmaf(A[row * k + l], B[column * k + l], sum);
                }
                C[row * n + column] = sum;
            }
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t m, int64_t k, int64_t n) {
    const dim3 grid(static_cast<unsigned>((n + TILE - 1) / TILE), static_cast<unsigned>((m + TILE - 1) / TILE));
    product_kernel<<<grid, 128>>>(static_cast<float*>(output), static_cast<const float*>(A), static_cast<const float*>(B), m, k, n);
    check(cudaGetLastError());
}
