// problem: level1/23
// does: spreads a row over four blocks of a cluster, which read each other's shared memory
// emulated: correct
// cuda: correct
// size: medium
#include <cooperative_groups.h>
#include <kernelblaster/scalar.cuh>

#include <math_constants.h>

namespace cg = cooperative_groups;

constexpr int BLOCKS = 4, THREADS = 512;

__device__ float over_block(float value, bool maximum) {
    __shared__ float shared[THREADS / 32];
    for (int o = 16; o > 0; o /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, value, o);
        value = maximum ? fmaxf(value, other) : value + other;
    }
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    value = shared[0];
    for (int i = 1; i < THREADS / 32; ++i) value = maximum ? fmaxf(value, shared[i]) : value + shared[i];
    __syncthreads();
    return value;
}

__device__ float over_cluster(float value, bool maximum, float* mine) {
    const cg::cluster_group cluster = cg::this_cluster();
    value = over_block(value, maximum);
    if (threadIdx.x == 0) *mine = value;
    cluster.sync();
    value = *cluster.map_shared_rank(mine, 0);
    for (int i = 1; i < BLOCKS; ++i) {
        const float other = *cluster.map_shared_rank(mine, i);
        value = maximum ? fmaxf(value, other) : value + other;
    }
    cluster.sync();  // nobody may leave, or write again, while others read
    return value;
}

__global__ void __cluster_dims__(BLOCKS, 1, 1) softmax(scalar_t* y, const scalar_t* x, int64_t dim) {
    __shared__ float mine;
    const int64_t row = blockIdx.x / BLOCKS, first = blockIdx.x % BLOCKS * THREADS + threadIdx.x;
    float maximum = -CUDART_INF_F, sum = 0.0f;
    for (int64_t i = first; i < dim; i += BLOCKS * THREADS) maximum = fmaxf(maximum, to_float(x[row * dim + i]));
    maximum = over_cluster(maximum, true, &mine);
    for (int64_t i = first; i < dim; i += BLOCKS * THREADS) sum += expf(to_float(x[row * dim + i]) - maximum);
    sum = over_cluster(sum, false, &mine);
    for (int64_t i = first; i < dim; i += BLOCKS * THREADS) {
        y[row * dim + i] = from_float(expf(to_float(x[row * dim + i]) - maximum) / sum);
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    softmax<<<unsigned(batch_size * BLOCKS), THREADS>>>(static_cast<scalar_t*>(output),
                                                        static_cast<const scalar_t*>(x), dim);
}
