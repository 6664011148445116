// problem: level1/4
// does: a bulk copy multicasts pieces of the vector to the four blocks of a cluster
// emulated: correct
// cuda: correct
// size: medium
#include <cooperative_groups.h>
#include <kernelblaster/scalar.cuh>

namespace cg = cooperative_groups;

constexpr int BLOCKS = 4, THREADS = 256, BYTES = 16384;
constexpr int ITEMS = BYTES / int(sizeof(scalar_t));

__global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(THREADS)
matvec(scalar_t* y, const scalar_t* A, const scalar_t* v, int64_t rows, int64_t k) {
    __shared__ __align__(128) scalar_t piece[ITEMS];
    __shared__ __align__(8) unsigned long long barrier;
    __shared__ float sums[THREADS / 32];
    const cg::cluster_group cluster = cg::this_cluster();
    const unsigned bar = unsigned(__cvta_generic_to_shared(&barrier)), to = unsigned(__cvta_generic_to_shared(piece));
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    const int64_t row = blockIdx.x;  // the grid is a multiple of the cluster, its last blocks may have no row
    const scalar_t* line = A + (row < rows ? row : 0) * k;
    float sum = 0.0f;
    const int64_t pieces = k / ITEMS;
    for (int64_t p = 0; p < pieces; ++p) {
        cluster.sync();  // all have read the piece before, and all barriers exist
        if (threadIdx.x == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(BYTES) : "memory");
            if (cluster.block_rank() == 0) {
                asm volatile(
                    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(to),
                    "l"(v + p * ITEMS), "r"(BYTES), "r"(bar), "h"((unsigned short)((1 << BLOCKS) - 1))
                    : "memory");
            }
        }
        unsigned done = 0;
        while (!done) {
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                         : "=r"(done)
                         : "r"(bar), "r"(unsigned(p & 1))
                         : "memory");
        }
        for (int i = threadIdx.x; i < ITEMS; i += THREADS) sum = fmaf(to_float(line[p * ITEMS + i]), to_float(piece[i]), sum);
    }
    for (int64_t i = pieces * ITEMS + threadIdx.x; i < k; i += THREADS) sum = fmaf(to_float(line[i]), to_float(v[i]), sum);
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0 && row < rows) {
        for (int i = 1; i < THREADS / 32; ++i) sum += sums[i];
        y[row] = from_float(sum);
    }
    cluster.sync();  // no block leaves while copies into it may be under way
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t m, int64_t k) {
    matvec<<<unsigned((m + BLOCKS - 1) / BLOCKS * BLOCKS), THREADS>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(A),
                                                                     static_cast<const scalar_t*>(B), m, k);
}
