// Experts: the shared one by matrix products, the chosen ones by one warp per element.
#include <kernelblaster/kernels/experts.cuh>
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct TimesSwish {
    const scalar_t* gate;
    __device__ float operator()(float sum, int64_t index, int64_t) const { return swish(to_float(gate[index])) * sum; }
};

struct AddShared {
    const scalar_t* shared;
    float scale;
    __device__ float operator()(float sum, int64_t i) const { return to_float(shared[i]) + scale * sum; }
};

void launch_gpu_implementation(void* output, void* x, void* experts, void* shares, void* gate, void* up, void* down,
                               void* shared_gate, void* shared_up, void* shared_down, int64_t tokens, int64_t width,
                               int64_t inner, int64_t experts_count, int64_t chosen, float scale) {
    Workspace scratch;
    scalar_t *gated = scratch.take(tokens * inner), *wide = scratch.take(tokens * inner);
    scalar_t *shared = scratch.take(tokens * width), *hidden = scratch.take(tokens * chosen * inner);
    linear(gated, in(x), in(shared_gate), tokens, width, inner, Plain());
    linear(wide, in(x), in(shared_up), tokens, width, inner, TimesSwish{gated});
    linear(shared, wide, in(shared_down), tokens, inner, width, Plain());
    experts_layer(out(output), hidden, in(x), Choices{static_cast<const int32_t*>(experts), in(shares), tokens, chosen},
                  ExpertWeights{in(gate), in(up), in(down), width, inner}, AddShared{shared, scale});
}
