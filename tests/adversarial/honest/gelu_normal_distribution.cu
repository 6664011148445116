// problem: level1/26
// does: x times the normal distribution function, by another routine than erf
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

__global__ void gelu(scalar_t* y, const scalar_t* x, int64_t n) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) y[i] = from_float(to_float(x[i]) * normcdff(to_float(x[i])));
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const int64_t n = batch_size * dim;
    gelu<<<unsigned((n + 255) / 256), 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), n);
}
