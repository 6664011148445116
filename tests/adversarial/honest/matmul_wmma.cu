// problem: level1/1
// does: tensor cores through nvcuda::wmma, edges padded in shared memory
// emulated: correct not_emulatable
// cuda: correct
#include <cuda_fp16.h>
#include <mma.h>
#include <kernelblaster/scalar.cuh>

using namespace nvcuda;

// One warp per 16 x 16 tile of C.
__global__ void matmul(__half* C, const __half* A, const __half* B, int64_t n) {
    __shared__ __align__(32) __half a[16 * 16], b[16 * 16];
    __shared__ __align__(32) float c[16 * 16];
    const int64_t row0 = int64_t(blockIdx.y) * 16, col0 = int64_t(blockIdx.x) * 16;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int64_t k0 = 0; k0 < n; k0 += 16) {
        for (int i = threadIdx.x; i < 256; i += 32) {
            const int64_t row = row0 + i / 16, ka = k0 + i % 16, kb = k0 + i / 16, col = col0 + i % 16;
            a[i] = row < n && ka < n ? A[row * n + ka] : __float2half(0.0f);
            b[i] = kb < n && col < n ? B[kb * n + col] : __float2half(0.0f);
        }
        __syncwarp();
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
        wmma::load_matrix_sync(left, a, 16);
        wmma::load_matrix_sync(right, b, 16);
        wmma::mma_sync(sum, left, right, sum);
        __syncwarp();
    }
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x; i < 256; i += 32) {
        const int64_t row = row0 + i / 16, col = col0 + i % 16;
        if (row < n && col < n) C[row * n + col] = __float2half(c[i]);
    }
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    const unsigned tiles = unsigned((n + 15) / 16);
    matmul<<<dim3(tiles, tiles), 32>>>(static_cast<__half*>(output), static_cast<const __half*>(A),
                                       static_cast<const __half*>(B), n);
}
