// The gated delta rule: a memory of key-value pairs that decays, and that each token corrects.
#pragma once
#include <kernelblaster/kernels/elementwise.cuh>
#include <kernelblaster/kernels/reduce.cuh>

struct DeltaRule {
    int64_t batch, length, heads, key_size, value_size;
    float epsilon;
};

struct DeltaInputs {
    const float *q, *k, *v, *rates, *decays;
};

// One over the length of a vector.
__device__ float scale_of(const float* vector, int64_t size, float epsilon) {
    float square = 0.0f;
    for (int64_t i = threadIdx.x; i < size; i += blockDim.x) square += vector[i] * vector[i];
    return rsqrtf(block_reduce(square, Sum()) + epsilon);
}

// One block per sample and head; thread j keeps the column of value j in `memory`, (key_size, value_size) per block.
// There are `decays_per_head` decays: one, or one for each element of a key.
__global__ void delta_rule_kernel(float* output, float* memory, DeltaInputs in, DeltaRule shape, int64_t decays_per_head) {
    const int64_t lane = blockIdx.x, sample = lane / shape.heads, head = lane % shape.heads, width = shape.value_size;
    float* state = memory + lane * shape.key_size * width;
    for (int64_t i = threadIdx.x; i < shape.key_size * width; i += blockDim.x) state[i] = 0.0f;
    for (int64_t t = 0; t < shape.length; ++t) {
        const int64_t token = (sample * shape.length + t) * shape.heads + head;
        const float *q = in.q + token * shape.key_size, *k = in.k + token * shape.key_size;
        const float q_scale = scale_of(q, shape.key_size, shape.epsilon), k_scale = scale_of(k, shape.key_size, shape.epsilon);
        const float rate = sigmoid(in.rates[token]);
        __syncthreads();
        for (int64_t j = threadIdx.x; j < width; j += blockDim.x) {
            float held = 0.0f, mixed = 0.0f;
            for (int64_t i = 0; i < shape.key_size; ++i) {
                state[i * width + j] *= sigmoid(in.decays[token * decays_per_head + i % decays_per_head]);
                held += state[i * width + j] * k[i] * k_scale;
            }
            const float change = rate * (in.v[token * width + j] - held);
            for (int64_t i = 0; i < shape.key_size; ++i) {
                state[i * width + j] += k[i] * k_scale * change;
                mixed += state[i * width + j] * q[i] * q_scale;
            }
            output[token * width + j] = mixed;
        }
    }
}

static void delta_rule(float* output, float* memory, DeltaInputs in, DeltaRule shape, int64_t decays_per_head) {
    delta_rule_kernel<<<static_cast<unsigned>(shape.batch * shape.heads), THREADS>>>(output, memory, in, shape,
                                                                                   decays_per_head);
    check(cudaGetLastError());
}
