// problem: level1/19
// does: takes managed memory as room between two kernels; the host never looks at it
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

__global__ void halve(float* to, const scalar_t* x, int64_t n) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) to[i] = fmaxf(to_float(x[i]), 0.0f);
}

__global__ void store(scalar_t* y, const float* from, int64_t n) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) y[i] = from_float(from[i]);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const int64_t n = batch_size * dim;
    float* room = nullptr;
    cudaMallocManaged(&room, n * sizeof(float));
    halve<<<unsigned((n + 255) / 256), 256>>>(room, static_cast<const scalar_t*>(x), n);
    store<<<unsigned((n + 255) / 256), 256>>>(static_cast<scalar_t*>(output), room, n);
    cudaFree(room);
}
