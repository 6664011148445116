#include <kernelblaster/kernels/launch.cuh>
#include <cuda_bf16.h>

constexpr int PITCH = 24;  // 16 values of k, and 8 that keep banks apart

__device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// x = hi + mid + lo, as far as it is finite; each to its plane.
__device__ __forceinline__ void put(__nv_bfloat16 (*planes)[64][PITCH], int row, int k, float x, int count) {
    for (int plane = 0; plane < count; ++plane) {
        const __nv_bfloat16 part = __float2bfloat16_rn(x);
        planes[plane][row][k] = part;
        x -= __bfloat162float(part);
    }
}

// 64 x 64 outputs, four warps of 32 x 32, 16 values of k at a time.
__global__ void __launch_bounds__(128) product_kernel(float* C, const float* A, const float* B, int64_t n) {
    __shared__ __align__(16) __nv_bfloat16 as[3][64][PITCH], bs[3][64][PITCH];
    const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32, g = lane / 4, t = lane % 4;
    const int wm = warp / 2 * 32, wn = warp % 2 * 32, mine = tid % 64, k8 = tid / 64 * 8;
    const int64_t row0 = static_cast<int64_t>(blockIdx.y) * 64, col0 = static_cast<int64_t>(blockIdx.x) * 64;
    float sums[2][4][4] = {};
    for (int64_t k0 = 0; k0 < n; k0 += 16) {
        float a[8], b[8];
        for (int i = 0; i < 8; ++i) {
            const int64_t k = k0 + k8 + i, r = row0 + mine, c = col0 + mine;
            a[i] = k < n && r < n ? A[r * n + k] : 0.0f;
            b[i] = k < n && c < n ? B[k * n + c] : 0.0f;
        }
        __syncthreads();
        for (int i = 0; i < 8; ++i) {
            put(as, mine, k8 + i, a[i], 3);
            put(bs, mine, k8 + i, b[i], 3);
        }
        __syncthreads();
        float part[2][4][4] = {};
        const auto products = [&](int p, int q) {
            unsigned af[2][4], bf[4][2];
            for (int i = 0; i < 2; ++i)
                for (int h = 0; h < 4; ++h)
                    af[i][h] = *reinterpret_cast<const unsigned*>(&as[p][wm + i * 16 + g + h % 2 * 8][t * 2 + h / 2 * 8]);
            for (int j = 0; j < 4; ++j)
                for (int h = 0; h < 2; ++h)
                    bf[j][h] = *reinterpret_cast<const unsigned*>(&bs[q][wn + j * 8 + g][t * 2 + h * 8]);
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 4; ++j) mma(part[i][j], af[i], bf[j]);
        };
        products(2, 0);
        products(0, 2);
        products(1, 1);
        products(0, 1);
        products(1, 0);
        products(0, 0);
        for (int i = 0; i < 32; ++i) sums[i / 16][i / 4 % 4][i % 4] += part[i / 16][i / 4 % 4][i % 4];
    }
    for (int i = 0; i < 32; ++i) {
        const int64_t r = row0 + wm + i / 16 * 16 + g + i / 2 % 2 * 8, c = col0 + wn + i / 4 % 4 * 8 + t * 2 + i % 2;
        if (r >= n || c >= n) continue;
        float sum = sums[i / 16][i / 4 % 4][i % 4];
        if (!isfinite(sum)) {  // infinities, and values that bf16 rounds to them
            sum = 0.0f;
            for (int64_t k = 0; k < n; ++k) sum = fmaf(A[r * n + k], B[k * n + c], sum);
        }
        C[r * n + c] = sum;
    }
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    const int64_t tiles = (n + 63) / 64;
    product_kernel<<<dim3(tiles, tiles), 128>>>(out(output), in(A), in(B), n);
    check(cudaGetLastError());
}
