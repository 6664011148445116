// problem: data/kernrl/level4/005_MoE_GatedGEMM
// does: counts and groups the choices of each expert, however many there are, and multiplies group by group
// emulated: correct
// cuda: correct
#include <kernelblaster/kernels/experts.cuh>
#include <kernelblaster/kernels/workspace.cuh>

// order[begins[e] ..] are the choices of expert e; one block.
__global__ void group(int32_t* order, const int32_t* experts, int64_t count, int64_t experts_count) {
    __shared__ int begins[257];
    for (int i = threadIdx.x; i <= experts_count; i += blockDim.x) begins[i] = 0;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) atomicAdd(&begins[experts[i] + 1], 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 0; i < experts_count; ++i) begins[i + 1] += begins[i];
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) order[atomicAdd(&begins[experts[i]], 1)] = int32_t(i);
}

__global__ void first_layer(scalar_t* hidden, const scalar_t* x, Choices choices, ExpertWeights w, const int32_t* order) {
    for (int64_t i = first_index() / 32; i < choices.tokens * choices.chosen * w.inner; i += index_step() / 32) {
        const int64_t choice = order[i / w.inner], row = choices.experts[choice] * w.inner + i % w.inner;
        const scalar_t* token = x + choice / choices.chosen * w.width;
        const float gate = warp_dot(token, w.gate + row * w.width, w.width);
        const float up = warp_dot(token, w.up + row * w.width, w.width);
        if (threadIdx.x % 32 == 0) hidden[choice * w.inner + i % w.inner] = from_float(swish(gate) * up);
    }
}

struct AsItIs {
    __device__ float operator()(float sum, int64_t) const { return sum; }
};

void launch_gpu_implementation(void* output, void* x, void* experts, void* shares, void* gate, void* up, void* down,
                               int64_t tokens, int64_t width, int64_t inner, int64_t experts_count, int64_t chosen) {
    Workspace scratch;
    const Choices choices{static_cast<const int32_t*>(experts), in(shares), tokens, chosen};
    const ExpertWeights weights{in(gate), in(up), in(down), width, inner};
    int32_t* order = reinterpret_cast<int32_t*>(scratch.take_float(tokens * chosen));
    scalar_t* hidden = scratch.take(tokens * chosen * inner);
    group<<<1, 256>>>(order, choices.experts, tokens * chosen, experts_count);
    first_layer<<<blocks_for(32 * tokens * chosen * inner), THREADS>>>(hidden, in(x), choices, weights, order);
    experts_out_kernel<<<blocks_for(32 * tokens * width), THREADS>>>(out(output), hidden, choices, weights, AsItIs());
}
