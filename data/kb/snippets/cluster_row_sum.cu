// Rows too long for one SM: a cluster of 8 blocks holds a row, and partial sums travel by distributed shared memory.
#include "check.cuh"

#include <cooperative_groups.h>
namespace cg = cooperative_groups;

constexpr int BLOCKS = 8, THREADS = 128;

__global__ void __cluster_dims__(BLOCKS, 1, 1) normalise(float *out, const float *in, int columns) {
    __shared__ float warp_sums[THREADS / 32], partial;
    cg::cluster_group cluster = cg::this_cluster();
    int row = blockIdx.x / BLOCKS, rank = cluster.block_rank();
    int first = columns * rank / BLOCKS, last = columns * (rank + 1) / BLOCKS;
    float sum = 0.0f;
    for (int c = first + threadIdx.x; c < last; c += THREADS) sum += in[row * columns + c];
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        partial = 0.0f;
        for (float one : warp_sums) partial += one;
    }
    cluster.sync();  // every peer has written its partial sum
    float total = 0.0f;
    for (int peer = 0; peer < BLOCKS; ++peer) total += *cluster.map_shared_rank(&partial, peer);
    for (int c = first + threadIdx.x; c < last; c += THREADS)
        out[row * columns + c] = in[row * columns + c] - total / columns;
    cluster.sync();  // nobody leaves while a peer may still read
}

int main() {
    const int rows = 3, columns = 5003;
    std::vector<float> x = values(rows * columns, 2), expected(x.size());
    for (int r = 0; r < rows; ++r) {
        double sum = 0;
        for (int c = 0; c < columns; ++c) sum += x[r * columns + c];
        for (int c = 0; c < columns; ++c) expected[r * columns + c] = x[r * columns + c] - sum / columns;
    }
    float *in = on_device(x), *out = on_device(std::vector<float>(x.size(), NAN));
    normalise<<<rows * BLOCKS, THREADS>>>(out, in, columns);
    return compare(on_host(out, x.size()), expected, 1e-5f);
}
