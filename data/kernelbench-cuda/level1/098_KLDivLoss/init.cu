// Sum of t (log t - log p) over everything, divided by the rows: partial sums per block, then their sum by one block.
#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct Divergence {
    const scalar_t *predictions, *targets;
    __device__ float operator()(int64_t i) const {
        const float prediction = to_float(predictions[i]), target = to_float(targets[i]);
        const float own = target > 0.0f ? target * logf(target) : 0.0f;
        return own - target * logf(prediction);
    }
};

void launch_gpu_implementation(void* output, void* predictions, void* targets, int64_t batch_size, int64_t dim) {
    Workspace workspace;
    const Divergence term{in(predictions), in(targets)};
    sum_all(workspace.take_float(PARTIALS), batch_size * dim, term, StoreScaled{out(output), 1.0f / batch_size});
}
