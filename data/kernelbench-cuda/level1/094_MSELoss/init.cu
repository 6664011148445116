// Mean of squared differences: partial sums per block, then their sum by one block.
#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct SquaredError {
    const scalar_t *predictions, *targets;
    __device__ float operator()(int64_t i) const {
        const float difference = to_float(predictions[i]) - to_float(targets[i]);
        return difference * difference;
    }
};

void launch_gpu_implementation(void* output, void* predictions, void* targets, int64_t batch_size, int64_t dim) {
    const int64_t count = batch_size * dim;
    Workspace workspace;
    const StoreScaled mean{out(output), 1.0f / count};
    sum_all(workspace.take_float(PARTIALS), count, SquaredError{in(predictions), in(targets)}, mean);
}
