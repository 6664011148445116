#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__global__ void relu_kernel(scalar_t* output, const scalar_t* x, int64_t count) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) output[i] = from_float(fmaxf(to_float(x[i]), 0.0f));
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const int64_t count = batch_size * dim;
    const int threads = 256;
    const int64_t blocks = (count + threads - 1) / threads;
    relu_kernel<<<blocks, threads>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), count);
    check(cudaGetLastError());
}
