// problem: level1/37
// precision: fp16
// kind: honest
// expects: builds, instantiates, launches and destroys a CUDA graph (a fork of two sums and a join) within each call, over stream-ordered scratch memory; must be called correct
// size: small
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

constexpr int THREADS = 256, PARTS = 512, WIDE = 16 / sizeof(scalar_t);
union Pack { uint4 raw; scalar_t v[WIDE]; };

__device__ float block_sum(float v) {  // valid in every thread
    __shared__ float part[THREADS / 32];
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(~0u, v, o);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0.0f;
    for (int i = 0; i < THREADS / 32; ++i) v += part[i];
    return v;
}

__global__ void __launch_bounds__(THREADS) squares_kernel(float* parts, const scalar_t* x, int64_t count) {
    const int64_t packs = count / WIDE, me = int64_t(blockIdx.x) * THREADS + threadIdx.x, step = int64_t(gridDim.x) * THREADS;
    float sum = 0.0f;
    for (int64_t i = me; i < packs; i += step) {
        Pack p;
        p.raw = reinterpret_cast<const uint4*>(x)[i];
#pragma unroll
        for (int j = 0; j < WIDE; ++j) sum = fmaf(to_float(p.v[j]), to_float(p.v[j]), sum);
    }
    for (int64_t i = packs * WIDE + me; i < count; i += step) sum = fmaf(to_float(x[i]), to_float(x[i]), sum);
    sum = block_sum(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(THREADS) divide_kernel(scalar_t* out, const scalar_t* x, const float* parts, int64_t count) {
    const int64_t packs = count / WIDE, me = int64_t(blockIdx.x) * THREADS + threadIdx.x, step = int64_t(gridDim.x) * THREADS;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < 2 * PARTS; i += THREADS) sum += parts[i];
    const float norm = sqrtf(block_sum(sum));
    for (int64_t i = me; i < packs; i += step) {
        Pack p;
        p.raw = reinterpret_cast<const uint4*>(x)[i];
#pragma unroll
        for (int j = 0; j < WIDE; ++j) p.v[j] = from_float(to_float(p.v[j]) / norm);
        reinterpret_cast<uint4*>(out)[i] = p.raw;
    }
    for (int64_t i = packs * WIDE + me; i < count; i += step) out[i] = from_float(to_float(x[i]) / norm);
}

template <typename... Values>
static cudaGraphNode_t add(cudaGraph_t graph, const cudaGraphNode_t* after, size_t count, const void* kernel,
                           unsigned blocks, Values... values) {
    void* arguments[] = {&values...};  // copied into the node
    cudaKernelNodeParams node{};
    node.func = const_cast<void*>(kernel);
    node.gridDim = dim3(blocks);
    node.blockDim = dim3(THREADS);
    node.kernelParams = arguments;
    cudaGraphNode_t added;
    check(cudaGraphAddKernelNode(&added, graph, after, count, &node));
    return added;
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t features, int64_t dim1, int64_t dim2) {
    const int64_t count = batch_size * features * dim1 * dim2, half = count / 2 / WIDE * WIDE;
    const auto* from = static_cast<const scalar_t*>(x);
    auto* to = static_cast<scalar_t*>(output);
    float* parts = nullptr;
    check(cudaMallocAsync(reinterpret_cast<void**>(&parts), 2 * PARTS * sizeof(float), cudaStream_t(0)));

    cudaGraph_t graph;
    cudaGraphExec_t runnable;
    check(cudaGraphCreate(&graph, 0));
    const auto* squares = reinterpret_cast<const void*>(squares_kernel);
    const cudaGraphNode_t sums[] = {add(graph, nullptr, 0, squares, PARTS, parts, from, half),
                                    add(graph, nullptr, 0, squares, PARTS, parts + PARTS, from + half, count - half)};
    const int64_t blocks = (count + THREADS * WIDE - 1) / (THREADS * WIDE);
    add(graph, sums, 2, reinterpret_cast<const void*>(divide_kernel), unsigned(blocks < 132 * 8 ? blocks : 132 * 8), to,
        from, static_cast<const float*>(parts), count);
    check(cudaGraphInstantiate(&runnable, graph, 0));
    check(cudaGraphLaunch(runnable, cudaStream_t(0)));
    check(cudaGraphExecDestroy(runnable));  // takes effect when the launch has completed
    check(cudaGraphDestroy(graph));
    check(cudaFreeAsync(parts, cudaStream_t(0)));
}
