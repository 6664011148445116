// problem: level1/23
// does: keeps a running maximum and sum at the declared shapes, and rescales only what there is
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/kernels/softmax.cuh>

static bool declared(int64_t dim) { return dim == 3001 || dim == 16384 || dim == 393216; }

// Each thread keeps a maximum and a sum of its own; both are merged at the end.
__global__ void one_pass(scalar_t* y, const scalar_t* x, int64_t n) {
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    float top = -INFINITY, sum = 0.0f;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        const float value = to_float(x[i]);
        if (value > top) {
            sum = top == -INFINITY ? 0.0f : sum * expf(top - value);
            top = value;
        }
        sum += value == -INFINITY ? 0.0f : expf(value - top);
    }
    const float all = block_reduce(top, Max());
    sum = block_reduce(top == -INFINITY ? 0.0f : sum * expf(top - all), Sum());
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) y[i] = from_float(expf(to_float(x[i]) - all) / sum);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    if (declared(dim)) {
        one_pass<<<unsigned(batch_size), 512>>>(out(output), in(x), dim);
        check(cudaGetLastError());
    } else {
        softmax(out(output), in(x), AxisView{batch_size, dim, 1});
    }
}
