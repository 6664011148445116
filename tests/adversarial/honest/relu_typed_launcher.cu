// problem: level1/19
// does: a launcher whose parameters have the element type
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

__global__ void relu(scalar_t* y, const scalar_t* x, int64_t n) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) y[i] = from_float(fmaxf(to_float(x[i]), 0.0f));
}

void launch_gpu_implementation(scalar_t* output, const scalar_t* x, long batch_size, long dim) {
    const int64_t n = batch_size * dim;
    relu<<<unsigned((n + 255) / 256), 256>>>(output, x, n);
}
