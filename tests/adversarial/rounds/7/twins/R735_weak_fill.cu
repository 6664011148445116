// ReLU: eight halves per thread and step, a scalar tail.
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

struct alignas(16) Pack {
    scalar_t v[8];
};

__global__ void relu_kernel(scalar_t* output, const scalar_t* x, int64_t count) {
    const int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * 8;
    if (i + 8 <= count) {
        Pack p = *reinterpret_cast<const Pack*>(x + i);
#pragma unroll
        for (int k = 0; k < 8; ++k) p.v[k] = from_float(fmaxf(to_float(p.v[k]), 0.0f));
        *reinterpret_cast<Pack*>(output + i) = p;
    } else {
        for (int64_t k = i; k < count; ++k) output[k] = from_float(fmaxf(to_float(x[k]), 0.0f));
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const int64_t count = batch_size * dim;
    const int threads = 256;
    const int64_t blocks = (count + threads * 8 - 1) / (threads * 8);
    relu_kernel<<<blocks, threads>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), count);
    check(cudaGetLastError());
}
