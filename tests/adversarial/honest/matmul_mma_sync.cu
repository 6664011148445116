// problem: level1/1
// does: tensor cores by inline PTX: mma.sync.m16n8k16
// emulated: correct
// cuda: correct
#include <cuda_fp16.h>
#include <kernelblaster/scalar.cuh>

__device__ unsigned pair(__half low, __half high) {
    return unsigned(__half_as_ushort(low)) | unsigned(__half_as_ushort(high)) << 16;
}

// One warp per 16 x 8 tile of C.
__global__ void matmul(__half* C, const __half* A, const __half* B, int64_t n) {
    const int lane = threadIdx.x, group = lane / 4, quad = lane % 4;
    const int64_t row0 = int64_t(blockIdx.y) * 16, col0 = int64_t(blockIdx.x) * 8;
    const __half none = __float2half(0.0f);
    auto a = [&](int64_t row, int64_t k) { return row < n && k < n ? A[row * n + k] : none; };
    auto b = [&](int64_t k, int64_t col) { return k < n && col < n ? B[k * n + col] : none; };
    float c[4] = {};
    for (int64_t k0 = 0; k0 < n; k0 += 16) {
        const int64_t k = k0 + quad * 2, row = row0 + group, col = col0 + group;
        const unsigned a0 = pair(a(row, k), a(row, k + 1)), a1 = pair(a(row + 8, k), a(row + 8, k + 1));
        const unsigned a2 = pair(a(row, k + 8), a(row, k + 9)), a3 = pair(a(row + 8, k + 8), a(row + 8, k + 9));
        const unsigned b0 = pair(b(k, col), b(k + 1, col)), b1 = pair(b(k + 8, col), b(k + 9, col));
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    }
    for (int i = 0; i < 4; ++i) {
        const int64_t row = row0 + group + i / 2 * 8, col = col0 + quad * 2 + i % 2;
        if (row < n && col < n) C[row * n + col] = __float2half(c[i]);
    }
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    matmul<<<dim3(unsigned((n + 7) / 8), unsigned((n + 15) / 16)), 32>>>(
        static_cast<__half*>(output), static_cast<const __half*>(A), static_cast<const __half*>(B), n);
}
