// problem: level1/23
// does: cooperative groups' reduce with plus and greater, over tiles and the block
// emulated: correct
// cuda: correct
// size: medium
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <kernelblaster/scalar.cuh>

namespace cg = cooperative_groups;

template <typename Operator>
__device__ float over_block(const cg::thread_block& block, const cg::thread_block_tile<32>& tile, float v, float neutral, Operator op,
                            float* shared) {
    v = cg::reduce(tile, v, op);
    if (tile.thread_rank() == 0) shared[tile.meta_group_rank()] = v;
    block.sync();
    v = tile.thread_rank() < tile.meta_group_size() ? shared[tile.thread_rank()] : neutral;
    v = cg::reduce(tile, v, op);
    block.sync();
    return v;
}

__global__ void __launch_bounds__(512) softmax(scalar_t* y, const scalar_t* x, int64_t n) {
    __shared__ float shared[32];
    const auto block = cg::this_thread_block();
    const auto tile = cg::tiled_partition<32>(block);
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    float top = -INFINITY, sum = 0.0f;
    for (int64_t i = block.thread_rank(); i < n; i += block.size()) top = fmaxf(top, to_float(x[i]));
    top = over_block(block, tile, top, -INFINITY, cg::greater<float>(), shared);
    for (int64_t i = block.thread_rank(); i < n; i += block.size()) sum += expf(to_float(x[i]) - top);
    sum = over_block(block, tile, sum, 0.0f, cg::plus<float>(), shared);
    const float inverse = 1.0f / sum;
    for (int64_t i = block.thread_rank(); i < n; i += block.size()) y[i] = from_float(expf(to_float(x[i]) - top) * inverse);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    softmax<<<static_cast<unsigned>(batch_size), 512>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim);
}
