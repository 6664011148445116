// problem: level1/12
// does: cooperative groups: tiles of 32 threads, one row each
// emulated: correct
// cuda: correct
// size: medium
#include <cooperative_groups.h>
#include <kernelblaster/scalar.cuh>

namespace cg = cooperative_groups;

__global__ void scale(scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t n, int64_t m) {
    const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    const int64_t row = int64_t(blockIdx.x) * tile.meta_group_size() + tile.meta_group_rank();
    if (row >= n) return;
    const float factor = tile.shfl(tile.thread_rank() == 0 ? to_float(A[row]) : 0.0f, 0);
    for (int64_t col = tile.thread_rank(); col < m; col += tile.size()) {
        C[row * m + col] = from_float(factor * to_float(B[row * m + col]));
    }
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n, int64_t m) {
    scale<<<unsigned((n + 7) / 8), 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(A),
                                          static_cast<const scalar_t*>(B), n, m);
}
