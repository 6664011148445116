// problem: level2/59
// does: a cluster of four blocks splits K, and adds its partial tiles through distributed shared memory
// emulated: correct
// cuda: correct
// size: medium
#include <cooperative_groups.h>
#include <kernelblaster/scalar.cuh>
#include <mma.h>

namespace cg = cooperative_groups;
namespace wm = nvcuda::wmma;

constexpr int SPLITS = 4, TILE = 32, DEPTH = 32, LD = DEPTH + 8;

__global__ void __cluster_dims__(SPLITS, 1, 1) __launch_bounds__(128)
swish(scalar_t* y, const scalar_t* x, const scalar_t* w, const scalar_t* bias, int64_t rows, int64_t inner, int64_t cols, float factor) {
    __shared__ __align__(32) scalar_t xs[TILE * LD], ws[TILE * LD];
    __shared__ __align__(32) float partial[TILE * TILE];
    const cg::cluster_group cluster = cg::this_cluster();
    const int split = int(cluster.block_rank()), warp = threadIdx.x / 32;
    const int64_t col0 = int64_t(blockIdx.x / SPLITS) * TILE, row0 = int64_t(blockIdx.y) * TILE;
    wm::fragment<wm::accumulator, 16, 16, 16, float> c;
    wm::fill_fragment(c, 0.0f);
    for (int64_t k0 = int64_t(split) * DEPTH; k0 < inner; k0 += SPLITS * DEPTH) {
        for (int e = threadIdx.x; e < TILE * DEPTH; e += 128) {
            const int r = e / DEPTH, k = e % DEPTH;
            const bool in = k0 + k < inner;
            xs[r * LD + k] = in && row0 + r < rows ? x[(row0 + r) * inner + k0 + k] : scalar_t(0.0f);
            ws[r * LD + k] = in && col0 + r < cols ? w[(col0 + r) * inner + k0 + k] : scalar_t(0.0f);
        }
        __syncthreads();
        for (int k = 0; k < DEPTH; k += 16) {
            wm::fragment<wm::matrix_a, 16, 16, 16, scalar_t, wm::row_major> a;
            wm::fragment<wm::matrix_b, 16, 16, 16, scalar_t, wm::col_major> b;
            wm::load_matrix_sync(a, xs + warp / 2 * 16 * LD + k, LD);
            wm::load_matrix_sync(b, ws + warp % 2 * 16 * LD + k, LD);
            wm::mma_sync(c, a, b, c);
        }
        __syncthreads();
    }
    wm::store_matrix_sync(partial + warp / 2 * 16 * TILE + warp % 2 * 16, c, TILE, wm::mem_row_major);
    cluster.sync();
    // Each block finishes a quarter of the tile.
    for (int e = split * TILE * TILE / SPLITS + threadIdx.x; e < (split + 1) * TILE * TILE / SPLITS; e += 128) {
        const int64_t row = row0 + e / TILE, col = col0 + e % TILE;
        if (row >= rows || col >= cols) continue;
        float v = to_float(bias[col]);
        for (int s = 0; s < SPLITS; ++s) v += cluster.map_shared_rank(partial, s)[e];
        y[row * cols + col] = from_float(v / (1.0f + expf(-v)) * factor);
    }
    cluster.sync();  // shared memory stays until all have read it
}

void launch_gpu_implementation(void* output, void* x, void* matmul_weight, void* matmul_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, float scaling_factor) {
    const dim3 grid(unsigned((out_features + TILE - 1) / TILE) * SPLITS, unsigned((batch_size + TILE - 1) / TILE));
    swish<<<grid, 128>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), static_cast<const scalar_t*>(matmul_weight),
                         static_cast<const scalar_t*>(matmul_bias), batch_size, in_features, out_features, scaling_factor);
}
