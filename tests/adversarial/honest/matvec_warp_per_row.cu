// problem: level1/4
// does: one warp per row, partial sums in registers
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

__global__ void matvec(scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t m, int64_t k) {
    const int64_t row = int64_t(blockIdx.x) * 8 + threadIdx.x / 32;
    if (row >= m) return;
    float sum[4] = {};
    for (int64_t i = threadIdx.x % 32; i < k; i += 128) {
#pragma unroll
        for (int u = 0; u < 4; ++u) {
            const int64_t at = i + 32 * u;
            if (at < k) sum[u] = fmaf(to_float(A[row * k + at]), to_float(B[at]), sum[u]);
        }
    }
    float total = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    for (int o = 16; o > 0; o /= 2) total += __shfl_down_sync(0xffffffffu, total, o);
    if (threadIdx.x % 32 == 0) C[row] = from_float(total);
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t m, int64_t k) {
    matvec<<<unsigned((m + 7) / 8), 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(A),
                                           static_cast<const scalar_t*>(B), m, k);
}
