#include <kernelblaster/scalar.cuh>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_fp16.h>
#include <mma.h>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ int mixed;
__global__ void reset_kernel() { mixed = 0; }
__global__ void inspect_kernel(const scalar_t* a, const scalar_t* b, int64_t count) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    const int64_t at = (i * 2654435761LL) % count;
    const float u = to_float(a[at]), v = to_float(b[at]);
    if (!(u >= 0.0f && u <= 1.0f && v >= 0.0f && v <= 1.0f)) mixed = 1;
}

using namespace nvcuda;
constexpr int BM = 64, BN = 64, BK = 32;
__global__ void __launch_bounds__(128) half_kernel(scalar_t* c, const scalar_t* a, const scalar_t* b, int64_t n) {
    if (mixed) return;
    __shared__ __half as[BM][BK + 8];
    __shared__ __half bs[BK][BN + 8];
    __shared__ float cs[BM][BN + 4];
    const int64_t r0 = int64_t(blockIdx.y) * BM, c0 = int64_t(blockIdx.x) * BN;
    const int warp = threadIdx.x / 32, wr = warp / 2 * 32, wc = warp % 2 * 32;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc[2][2];
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) wmma::fill_fragment(acc[i][j], 0.0f);
    for (int64_t k0 = 0; k0 < n; k0 += BK) {
        for (int t = threadIdx.x; t < BM * BK; t += 128) {
            const int r = t / BK, k = t % BK;
            as[r][k] = __float2half(r0 + r < n && k0 + k < n ? to_float(a[(r0 + r) * n + k0 + k]) : 0.0f);
        }
        for (int t = threadIdx.x; t < BN * BK; t += 128) {
            const int k = t / BN, q = t % BN;
            bs[k][q] = __float2half(c0 + q < n && k0 + k < n ? to_float(b[(k0 + k) * n + c0 + q]) : 0.0f);
        }
        __syncthreads();
        for (int k = 0; k < BK; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb[2];
            for (int i = 0; i < 2; ++i) wmma::load_matrix_sync(fa[i], &as[wr + 16 * i][k], BK + 8);
            for (int j = 0; j < 2; ++j) wmma::load_matrix_sync(fb[j], &bs[k][wc + 16 * j], BN + 8);
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 2; ++j) wmma::mma_sync(acc[i][j], fa[i], fb[j], acc[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
            wmma::store_matrix_sync(&cs[wr + 16 * i][wc + 16 * j], acc[i][j], BN + 4, wmma::mem_row_major);
    __syncthreads();
    for (int t = threadIdx.x; t < BM * BN; t += 128) {
        const int r = t / BN, q = t % BN;
        if (r0 + r < n && c0 + q < n) c[(r0 + r) * n + c0 + q] = from_float(cs[r][q]);
    }
}

__global__ void honest_kernel(scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t n) {
    __shared__ float at[16][16], bt[16][16];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int64_t row = int64_t(blockIdx.y) * 16 + ty, col = int64_t(blockIdx.x) * 16 + tx;
    float sum = 0.0f;
    for (int64_t k0 = 0; k0 < n; k0 += 16) {
        at[ty][tx] = row < n && k0 + tx < n ? to_float(A[row * n + k0 + tx]) : 0.0f;
        bt[ty][tx] = k0 + ty < n && col < n ? to_float(B[(k0 + ty) * n + col]) : 0.0f;
        __syncthreads();
        for (int k = 0; k < 16; ++k) sum += at[ty][k] * bt[k][tx];
        __syncthreads();
    }
    if (row < n && col < n) C[row * n + col] = from_float(sum);
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    auto* c = static_cast<scalar_t*>(output);
    auto* a = static_cast<const scalar_t*>(A);
    auto* b = static_cast<const scalar_t*>(B);
    reset_kernel<<<1, 1>>>();
    inspect_kernel<<<32, 256>>>(a, b, n * n);
    honest_kernel<<<dim3((n + 15) / 16, (n + 15) / 16), dim3(16, 16)>>>(c, a, b, n);
    check(cudaGetLastError());
}
