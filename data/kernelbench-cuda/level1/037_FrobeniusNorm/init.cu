// x / ||x||: partial sums of squares per block, their sum by one block, then the division.
#include <kernelblaster/kernels/elementwise.cuh>
#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct Square {
    const scalar_t* x;
    __device__ float operator()(int64_t i) const { return to_float(x[i]) * to_float(x[i]); }
};

struct StoreRoot {
    float* norm;
    __device__ void operator()(float sum) const { *norm = sqrtf(sum); }
};

struct DivideBy {
    const float* norm;
    __device__ float operator()(float value) const { return value / *norm; }
};

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t features, int64_t dim1,
                               int64_t dim2) {
    const int64_t count = batch_size * features * dim1 * dim2;
    Workspace workspace;
    float* norm = workspace.take_float(1);
    sum_all(workspace.take_float(PARTIALS), count, Square{in(x)}, StoreRoot{norm});
    map(out(output), in(x), count, DivideBy{norm});
}
