// problem: level1/23
// does: clusters as large as the device lets it, up to the sixteen blocks that are not portable
// emulated: correct
// cuda: correct
// size: medium
#include <cooperative_groups.h>
#include <kernelblaster/scalar.cuh>

namespace cg = cooperative_groups;

constexpr int THREADS = 256;

__device__ float2 merge(float2 a, float2 b) {
    const float top = fmaxf(a.x, b.x);
    if (top == -INFINITY) return make_float2(top, 0.0f);
    return make_float2(top, a.y * expf(a.x - top) + b.y * expf(b.x - top));
}

__global__ void __launch_bounds__(THREADS) softmax(scalar_t* y, const scalar_t* x, int64_t dim) {
    __shared__ float2 part[THREADS / 32], mine;
    const cg::cluster_group cluster = cg::this_cluster();
    const unsigned blocks = cluster.num_blocks(), rank = cluster.block_rank();
    const int64_t row = blockIdx.x / blocks;
    x += row * dim;
    y += row * dim;
    float2 s = make_float2(-INFINITY, 0.0f);
    for (int64_t i = int64_t(rank) * THREADS + threadIdx.x; i < dim; i += int64_t(blocks) * THREADS)
        s = merge(s, make_float2(to_float(x[i]), 1.0f));
    for (int o = 16; o > 0; o >>= 1)
        s = merge(s, make_float2(__shfl_xor_sync(0xffffffffu, s.x, o), __shfl_xor_sync(0xffffffffu, s.y, o)));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < THREADS / 32; ++i) s = merge(s, part[i]);
        mine = s;
    }
    cluster.sync();
    s = *cluster.map_shared_rank(&mine, 0);
    for (unsigned i = 1; i < blocks; ++i) s = merge(s, *cluster.map_shared_rank(&mine, i));
    cluster.sync();
    for (int64_t i = int64_t(rank) * THREADS + threadIdx.x; i < dim; i += int64_t(blocks) * THREADS)
        y[i] = from_float(expf(to_float(x[i]) - s.x) / s.y);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    static int largest = 0;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {1, 1, 1};
    cudaLaunchConfig_t config{};
    config.blockDim = dim3(THREADS);
    config.attrs = &attribute;
    config.numAttrs = 1;
    if (largest == 0) {
        cudaFuncSetAttribute(softmax, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
        config.gridDim = dim3(16);
        if (cudaOccupancyMaxPotentialClusterSize(&largest, softmax, &config) != cudaSuccess || largest < 1) largest = 1;
        while (largest > 1 && (largest & (largest - 1)) != 0) --largest;
    }
    int blocks = largest;
    while (blocks > 1 && dim < int64_t(blocks) * THREADS) blocks /= 2;
    attribute.val.clusterDim.x = unsigned(blocks);
    config.gridDim = dim3(unsigned(batch_size * blocks));
    cudaLaunchKernelEx(&config, softmax, static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim);
}
