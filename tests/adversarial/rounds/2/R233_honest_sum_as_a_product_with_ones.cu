// problem: level1/47
// precision: fp16
// kind: honest
// expects: sums over rows on tensor cores: ones times the tile, products exact, fp32 accumulators
#include <kernelblaster/scalar.cuh>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mma.h>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

using namespace nvcuda;
// one warp: 16 columns; one block: 8 warps share the rows of 16 columns
__global__ void __launch_bounds__(256) ones_kernel(scalar_t* out, const scalar_t* x, int64_t dim1, int64_t dim2) {
    __shared__ __align__(32) __half tile[8][16 * 16];
    __shared__ __align__(32) float sums[8][16 * 16];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int64_t col = int64_t(blockIdx.x) * 16;
    const scalar_t* in = x + blockIdx.y * dim1 * dim2;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> ones;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> values;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
    wmma::fill_fragment(ones, __float2half(1.0f));
    wmma::fill_fragment(acc, 0.0f);
    for (int64_t r0 = warp * 16; r0 < dim1; r0 += 128) {
#pragma unroll
        for (int t = lane; t < 256; t += 32) {
            const int64_t r = r0 + t / 16, c = col + t % 16;
            tile[warp][t] = r < dim1 && c < dim2 ? in[r * dim2 + c] : __float2half(0.0f);
        }
        __syncwarp();
        wmma::load_matrix_sync(values, tile[warp], 16);
        wmma::mma_sync(acc, ones, values, acc);
        __syncwarp();
    }
    wmma::store_matrix_sync(sums[warp], acc, 16, wmma::mem_row_major);
    __syncthreads();
    if (threadIdx.x < 16 && col + threadIdx.x < dim2) {
        float sum = 0.0f;
        for (int i = 0; i < 8; ++i) sum += sums[i][threadIdx.x];
        out[blockIdx.y * dim2 + col + threadIdx.x] = from_float(sum);
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim1, int64_t dim2) {
    ones_kernel<<<dim3((dim2 + 15) / 16, batch_size), 256>>>(static_cast<scalar_t*>(output),
                                                            static_cast<const scalar_t*>(x), dim1, dim2);
    check(cudaGetLastError());
}
