// Causal attention whose queries share keys and values in groups, and rotations of vectors by position.
#pragma once
#include <kernelblaster/kernels/reduce.cuh>

// A vector per token and head: elements from one token or head to the next.
struct TokenVectors {
    const scalar_t* data;
    int64_t token, head;
    __device__ const scalar_t* at(int64_t t, int64_t h) const { return data + t * token + h * head; }
};

// `heads` query heads, of which `group` neighbours share a head of keys and values.
struct GroupedAttention {
    int64_t batch, length, heads, group, key_size, value_size;
};

// output[token, head] = softmax over tokens up to this one of (q . k / sqrt(key_size)), times v; one block per row.
__global__ void grouped_attention_kernel(scalar_t* output, TokenVectors q, TokenVectors k, TokenVectors v,
                                         GroupedAttention shape) {
    extern __shared__ float scores[];
    const float scale = rsqrtf(static_cast<float>(shape.key_size));
    for (int64_t row = blockIdx.x; row < shape.batch * shape.length * shape.heads; row += gridDim.x) {
        const int64_t head = row % shape.heads, token = row / shape.heads, shared_head = head / shape.group;
        const int64_t keys = token % shape.length + 1, first = token - keys + 1;
        float maximum = -INFINITY;
        for (int64_t key = threadIdx.x; key < keys; key += blockDim.x) {
            const scalar_t *wanted = q.at(token, head), *offered = k.at(first + key, shared_head);
            float dot = 0.0f;
            for (int64_t i = 0; i < shape.key_size; ++i) dot += to_float(wanted[i]) * to_float(offered[i]);
            scores[key] = dot * scale;
            maximum = fmaxf(maximum, scores[key]);
        }
        maximum = block_reduce(maximum, Max());
        float sum = 0.0f;
        for (int64_t key = threadIdx.x; key < keys; key += blockDim.x) {
            scores[key] = expf(scores[key] - maximum);
            sum += scores[key];
        }
        sum = block_reduce(sum, Sum());
        for (int64_t i = threadIdx.x; i < shape.value_size; i += blockDim.x) {
            float mixed = 0.0f;
            for (int64_t key = 0; key < keys; ++key) mixed += scores[key] * to_float(v.at(first + key, shared_head)[i]);
            output[row * shape.value_size + i] = from_float(mixed / sum);
        }
        __syncthreads();
    }
}

static void grouped_attention(scalar_t* output, TokenVectors q, TokenVectors k, TokenVectors v, GroupedAttention shape) {
    const unsigned blocks = blocks_for(shape.batch * shape.length * shape.heads, 1);
    // Whole 16 bytes: machine code loads so many at once, behind the last score, too.
    const int bytes = static_cast<int>((shape.length + 3) / 4 * 16), without_asking = 48 * 1024 - 256;
    if (bytes > without_asking) {
        check(cudaFuncSetAttribute(grouped_attention_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    }
    grouped_attention_kernel<<<blocks, THREADS, bytes>>>(output, q, k, v, shape);
    check(cudaGetLastError());
}

// Turns the pairs (i, i + half) of each vector by the angle of its position and of i; in place. The vectors of a token
// begin `token` elements apart, those of its heads `head`.
struct Rotate {
    scalar_t* data;
    int64_t token, head, heads, half, length;
    const float *cosines, *sines;
    __device__ void operator()(int64_t i) const {
        const int64_t pair = i % half, t = i / half / heads, angle = t % length * half + pair;
        scalar_t* vector = data + t * token + i / half % heads * head;
        const float a = to_float(vector[pair]), b = to_float(vector[pair + half]);
        vector[pair] = from_float(a * cosines[angle] - b * sines[angle]);
        vector[pair + half] = from_float(b * cosines[angle] + a * sines[angle]);
    }
};
