// problem: level2/12
// does: wgmma with hand-written descriptors over core matrices without swizzle, staged by plain loads
// emulated: correct
// cuda: correct
#include <cuda_fp16.h>
#include <kernelblaster/scalar.cuh>

// A tile of R rows and 64 columns lies as core matrices of 8 rows x 16 bytes, 128 bytes each, in one piece. The eight core
// matrices of a band of 8 rows follow each other: 128 bytes from one to the next along K, 1024 along rows.
constexpr int BM = 64, BN = 64, BK = 64, THREADS = 128;
constexpr unsigned ALONG_K = 128, ALONG_ROWS = 1024;

__device__ int place(int row, int k) { return row / 8 * 512 + k / 8 * 64 + row % 8 * 8 + k % 8; }

__device__ unsigned long long describe(const __half* tile) {
    const unsigned address = unsigned(__cvta_generic_to_shared(tile));
    return (unsigned long long)((address & 0x3FFFF) >> 4) | (unsigned long long)(ALONG_K >> 4) << 16 |
           (unsigned long long)(ALONG_ROWS >> 4) << 32;
}

__device__ void multiply(float (&d)[32], unsigned long long a, unsigned long long b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33, 1, 1, 1, 0, 0;\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
          "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
          "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
          "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "l"(a), "l"(b));
}

__global__ __launch_bounds__(THREADS) void gemm(__half* y, const __half* x, const __half* w, const __half* bias, int64_t rows,
                                                int64_t inner, int64_t cols, float multiplier, float slope) {
    __shared__ __align__(128) __half a[BM * BK];
    __shared__ __align__(128) __half b[BN * BK];
    const int64_t row0 = int64_t(blockIdx.y) * BM, col0 = int64_t(blockIdx.x) * BN;
    const __half zero = __float2half(0.0f);
    float d[32] = {};
    for (int64_t k0 = 0; k0 < inner; k0 += BK) {
        for (int e = threadIdx.x; e < BM * BK; e += THREADS) {
            const int r = e / BK, k = e % BK;
            const bool in = k0 + k < inner;
            a[place(r, k)] = in && row0 + r < rows ? x[(row0 + r) * inner + k0 + k] : zero;
            b[place(r, k)] = in && col0 + r < cols ? w[(col0 + r) * inner + k0 + k] : zero;
        }
        asm volatile("fence.proxy.async;" ::: "memory");  // wgmma reads shared memory through the async proxy
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int k = 0; k < BK; k += 16) multiply(d, describe(a + k * 8), describe(b + k * 8));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        __syncthreads();
    }
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int i = 0; i < 32; ++i) {
        const int64_t row = row0 + warp * 16 + lane / 4 + i / 2 % 2 * 8, col = col0 + i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (row >= rows || col >= cols) continue;
        const float v = (d[i] + __half2float(bias[col])) * multiplier;
        y[row * cols + col] = __float2half(v > 0.0f ? v : v * slope);
    }
}

void launch_gpu_implementation(void* output, void* x, void* gemm_weight, void* gemm_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, float multiplier, float negative_slope) {
    gemm<<<dim3(unsigned((out_features + BN - 1) / BN), unsigned((batch_size + BM - 1) / BM)), THREADS>>>(
        static_cast<__half*>(output), static_cast<const __half*>(x), static_cast<const __half*>(gemm_weight),
        static_cast<const __half*>(gemm_bias), batch_size, in_features, out_features, multiplier, negative_slope);
}
