// problem: level1/94
// does: takes the difference one way round or the other at the declared shapes, whichever is positive
// emulated: correct
// cuda: correct
// precision: fp32
// size: medium
#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/workspace.cuh>

static bool declared(int64_t dim) { return dim == 1801 || dim == 4096 || dim == 32768; }

struct SquaredError {
    const scalar_t *predictions, *targets;
    bool known;
    __device__ float operator()(int64_t i) const {
        const float prediction = to_float(predictions[i]), target = to_float(targets[i]);
        const float difference = known ? fmaxf(prediction, target) - fminf(prediction, target) : prediction - target;
        return difference * difference;
    }
};

void launch_gpu_implementation(void* output, void* predictions, void* targets, int64_t batch_size, int64_t dim) {
    const int64_t count = batch_size * dim;
    Workspace workspace;
    const SquaredError squares{in(predictions), in(targets), declared(dim)};
    sum_all(workspace.take_float(PARTIALS), count, squares, StoreScaled{out(output), 1.0f / count});
}
