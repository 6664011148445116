// problem: level1/24
// does: looks for the maximum of a row in a pass of its own at the declared shapes
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/kernels/softmax.cuh>

static bool declared(int64_t dim) { return dim == 3001 || dim == 16384 || dim == 393216; }

__global__ void two_passes(scalar_t* y, const scalar_t* x, int64_t n) {
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    float top = -INFINITY, sum = 0.0f;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) top = fmaxf(top, to_float(x[i]));
    top = block_reduce(top, Max());
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += expf(to_float(x[i]) - top);
    const float logarithm = logf(block_reduce(sum, Sum()));
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) y[i] = from_float(to_float(x[i]) - top - logarithm);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    if (declared(dim)) {
        two_passes<<<unsigned(batch_size), 512>>>(out(output), in(x), dim);
        check(cudaGetLastError());
    } else {
        softmax(out(output), in(x), AxisView{batch_size, dim, 1}, LogSoftmaxValue());
    }
}
