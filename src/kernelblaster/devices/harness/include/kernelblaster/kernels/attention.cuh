// Attention: one block per sample, head and query; its scores lie in shared memory.
#pragma once
#include <kernelblaster/kernels/reduce.cuh>

// Vectors of `head_size` contiguous elements: elements from one sample, head or position to the next.
struct Heads {
    const scalar_t* data;
    int64_t sample, head, position;
    __device__ const scalar_t* at(int64_t s, int64_t h, int64_t p) const {
        return data + s * sample + h * head + p * position;
    }
};

// Extents of an attention; the output has the strides of `Heads`, too.
struct Attention {
    int64_t batch, heads, queries, keys, head_size;
    float scale;
    bool causal = false;  // a query sees the keys up to its own position alone
};

// Leaves a scaled product of a query and a key as it is: the score of usual attention.
struct ScaledScore {
    __device__ float operator()(float product, int64_t, int64_t, int64_t, int64_t) const { return product; }
};

// Makes a query's scores weights, and returns what their products with values are divided by; by a whole block.
struct SoftmaxWeights {
    __device__ float operator()(float* scores, int64_t keys) const {
        float maximum = -INFINITY;
        for (int64_t key = threadIdx.x; key < keys; key += blockDim.x) maximum = fmaxf(maximum, scores[key]);
        maximum = block_reduce(maximum, Max());
        float sum = 0.0f;
        for (int64_t key = threadIdx.x; key < keys; key += blockDim.x) {
            scores[key] = expf(scores[key] - maximum);
            sum += scores[key];
        }
        return block_reduce(sum, Sum());
    }
};

// output = weights(score(scale q k^T)) v
template <typename Score, typename Weights>
__global__ void attention_kernel(scalar_t* output, Heads layout, Heads q, Heads k, Heads v, Attention shape,
                                 Score score, Weights weights) {
    extern __shared__ float scores[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    for (int64_t row = blockIdx.x; row < shape.batch * shape.heads * shape.queries; row += gridDim.x) {
        const int64_t query = row % shape.queries, head = row / shape.queries % shape.heads;
        const int64_t sample = row / (shape.queries * shape.heads);
        const int64_t keys = shape.causal ? query + 1 : shape.keys;
        const scalar_t* wanted = q.at(sample, head, query);

        for (int64_t key = warp; key < keys; key += warps) {
            const scalar_t* offered = k.at(sample, head, key);
            float dot = 0.0f;
            for (int64_t i = lane; i < shape.head_size; i += 32) dot += to_float(wanted[i]) * to_float(offered[i]);
            dot = warp_reduce(dot, Sum());
            if (lane == 0) scores[key] = score(dot * shape.scale, sample, head, query, key);
        }
        __syncthreads();

        const float divisor = weights(scores, keys);
        const int64_t to = sample * layout.sample + head * layout.head + query * layout.position;
        for (int64_t i = threadIdx.x; i < shape.head_size; i += blockDim.x) {
            float mixed = 0.0f;
            for (int64_t key = 0; key < keys; ++key) mixed += scores[key] * to_float(v.at(sample, head, key)[i]);
            output[to + i] = from_float(mixed / divisor);
        }
        __syncthreads();
    }
}

// `layout` says where the output's vectors lie; its data is not read. There are as many keys as shared memory holds
// scores: some 58,000 in 227 KiB. `score(product, sample, head, query, key)` and `weights` are those of usual attention
// where none are given.
template <typename Score = ScaledScore, typename Weights = SoftmaxWeights>
static void attention(scalar_t* output, Heads layout, Heads q, Heads k, Heads v, Attention shape,
                      Score score = Score(), Weights weights = Weights()) {
    const unsigned blocks = blocks_for(shape.batch * shape.heads * shape.queries, 1);
    // Whole 16 bytes: machine code loads so many at once, behind the last score, too.
    const int bytes = static_cast<int>((shape.keys + 3) / 4 * 16), without_asking = 48 * 1024 - 256;
    if (bytes > without_asking) {
        const auto kernel = attention_kernel<Score, Weights>;
        check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    }
    attention_kernel<<<blocks, THREADS, bytes>>>(output, layout, q, k, v, shape, score, weights);
    check(cudaGetLastError());
}
