// Gated layers whose weights each token chooses among those of several experts: one warp per output element.
#pragma once
#include <kernelblaster/kernels/elementwise.cuh>
#include <kernelblaster/kernels/reduce.cuh>

// What tokens choose: `chosen` experts each, with a share of the result.
struct Choices {
    const int32_t* experts;
    const scalar_t* shares;
    int64_t tokens, chosen;
};

// gate and up are (experts, inner, width), down is (experts, width, inner).
struct ExpertWeights {
    const scalar_t *gate, *up, *down;
    int64_t width, inner;
};

// Of a whole warp; every lane receives it.
__device__ float warp_dot(const scalar_t* a, const scalar_t* b, int64_t count) {
    float sum = 0.0f;
    for (int64_t i = threadIdx.x % 32; i < count; i += 32) sum += to_float(a[i]) * to_float(b[i]);
    return warp_reduce(sum, Sum());
}

// hidden[choice, i] = swish(gate x) * (up x)
__global__ void experts_in_kernel(scalar_t* hidden, const scalar_t* x, Choices choices, ExpertWeights w) {
    for (int64_t i = first_index() / 32; i < choices.tokens * choices.chosen * w.inner; i += index_step() / 32) {
        const int64_t choice = i / w.inner, row = choices.experts[choice] * w.inner + i % w.inner;
        const scalar_t* token = x + choice / choices.chosen * w.width;
        const float gate = warp_dot(token, w.gate + row * w.width, w.width);
        const float up = warp_dot(token, w.up + row * w.width, w.width);
        if (threadIdx.x % 32 == 0) hidden[i] = from_float(swish(gate) * up);
    }
}

// output[token, i] = finish(sum over its choices of share * (down hidden), token * width + i)
template <typename Finish>
__global__ void experts_out_kernel(scalar_t* output, const scalar_t* hidden, Choices choices, ExpertWeights w,
                                   Finish finish) {
    for (int64_t i = first_index() / 32; i < choices.tokens * w.width; i += index_step() / 32) {
        float sum = 0.0f;
        for (int64_t choice = i / w.width * choices.chosen; choice < (i / w.width + 1) * choices.chosen; ++choice) {
            const scalar_t* row = w.down + (choices.experts[choice] * w.width + i % w.width) * w.inner;
            sum += to_float(choices.shares[choice]) * warp_dot(hidden + choice * w.inner, row, w.inner);
        }
        if (threadIdx.x % 32 == 0) output[i] = from_float(finish(sum, i));
    }
}

// `hidden` holds tokens * chosen * inner elements.
template <typename Finish>
static void experts_layer(scalar_t* output, scalar_t* hidden, const scalar_t* x, Choices choices, ExpertWeights w,
                          Finish finish) {
    const int64_t inner = choices.tokens * choices.chosen * w.inner;
    experts_in_kernel<<<blocks_for(32 * inner), THREADS>>>(hidden, x, choices, w);
    check(cudaGetLastError());
    experts_out_kernel<<<blocks_for(32 * choices.tokens * w.width), THREADS>>>(output, hidden, choices, w, finish);
    check(cudaGetLastError());
}
