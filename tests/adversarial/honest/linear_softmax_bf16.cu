// problem: level2/99
// does: a bf16 linear layer with GELU by mma.sync into an fp32 workspace, then a softmax of rows
// emulated: correct
// cuda: correct
// precision: bf16
// size: medium
#include <cuda_bf16.h>
#include <kernelblaster/scalar.cuh>

using bf16 = __nv_bfloat16;

constexpr int BM = 32, BN = 64, BK = 32, LD = BK + 8;

__device__ unsigned two(const bf16* p) { return *reinterpret_cast<const unsigned*>(p); }

__global__ __launch_bounds__(128) void linear_gelu(float* y, const bf16* x, const bf16* w, const bf16* bias, int64_t rows,
                                                   int64_t inner, int64_t cols) {
    __shared__ __align__(16) bf16 a[BM * LD], b[BN * LD];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, quad = lane % 4;
    const int wm = warp / 2 * 16, wn = warp % 2 * 32;
    const int64_t row0 = int64_t(blockIdx.y) * BM, col0 = int64_t(blockIdx.x) * BN;
    const bf16 zero = __float2bfloat16(0.0f);
    float c[4][4] = {};
    for (int64_t k0 = 0; k0 < inner; k0 += BK) {
        for (int e = threadIdx.x; e < BM * BK; e += 128) {
            const int r = e / BK, k = e % BK;
            a[r * LD + k] = row0 + r < rows && k0 + k < inner ? x[(row0 + r) * inner + k0 + k] : zero;
        }
        for (int e = threadIdx.x; e < BN * BK; e += 128) {
            const int r = e / BK, k = e % BK;
            b[r * LD + k] = col0 + r < cols && k0 + k < inner ? w[(col0 + r) * inner + k0 + k] : zero;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            const bf16* left = a + (wm + group) * LD + k + quad * 2;
            const unsigned a0 = two(left), a1 = two(left + 8 * LD), a2 = two(left + 8), a3 = two(left + 8 * LD + 8);
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const bf16* right = b + (wn + j * 8 + group) * LD + k + quad * 2;
                asm volatile(
                    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                    : "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3])
                    : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(two(right)), "r"(two(right + 8)));
            }
        }
        __syncthreads();
    }
    for (int j = 0; j < 4; ++j)
        for (int e = 0; e < 4; ++e) {
            const int64_t r = row0 + wm + group + e / 2 * 8, col = col0 + wn + j * 8 + quad * 2 + e % 2;
            if (r >= rows || col >= cols) continue;
            const float v = c[j][e] + __bfloat162float(bias[col]);
            y[r * cols + col] = 0.5f * v * (1.0f + erff(v * 0.70710678f));
        }
}

__global__ void softmax(bf16* y, const float* x, int64_t n) {
    __shared__ float red[8];
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float top = -INFINITY, sum = 0.0f;
    for (int64_t i = threadIdx.x; i < n; i += 256) top = fmaxf(top, x[i]);
    for (int o = 16; o; o >>= 1) top = fmaxf(top, __shfl_xor_sync(~0u, top, o));
    if (lane == 0) red[warp] = top;
    __syncthreads();
    for (int i = 0; i < 8; ++i) top = fmaxf(top, red[i]);
    __syncthreads();
    for (int64_t i = threadIdx.x; i < n; i += 256) sum += expf(x[i] - top);
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    if (lane == 0) red[warp] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int i = 0; i < 8; ++i) sum += red[i];
    for (int64_t i = threadIdx.x; i < n; i += 256) y[i] = __float2bfloat16(expf(x[i] - top) / sum);
}

void launch_gpu_implementation(void* output, void* x, void* linear_weight, void* linear_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features) {
    static float* wide = nullptr;
    static int64_t held = 0;
    if (batch_size * out_features > held) {
        held = batch_size * out_features;
        cudaFree(wide);
        cudaMalloc(&wide, held * sizeof(float));
    }
    linear_gelu<<<dim3(unsigned((out_features + BN - 1) / BN), unsigned((batch_size + BM - 1) / BM)), 128>>>(
        wide, static_cast<const bf16*>(x), static_cast<const bf16*>(linear_weight), static_cast<const bf16*>(linear_bias),
        batch_size, in_features, out_features);
    softmax<<<unsigned(batch_size), 256>>>(static_cast<bf16*>(output), wide, out_features);
}
