#include <kernelblaster/scalar.cuh>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ __forceinline__ scalar_t relu1(scalar_t v) {
    const float f = to_float(v);
    return f > 0.0f ? v : (f != f ? v : from_float(0.0f));
}
__global__ void relu_kernel(scalar_t* __restrict__ out, const scalar_t* __restrict__ x, int64_t n) {
    constexpr int V = 16 / sizeof(scalar_t);
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    const int64_t first = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    for (int64_t i = first; i < n / V; i += stride) {
        uint4 raw = reinterpret_cast<const uint4*>(x)[i];
        scalar_t* s = reinterpret_cast<scalar_t*>(&raw);
#pragma unroll
        for (int j = 0; j < V; ++j) s[j] = relu1(s[j]);
        reinterpret_cast<uint4*>(out)[i] = raw;
    }
    for (int64_t i = n / V * V + first; i < n; i += stride) out[i] = relu1(x[i]);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const int64_t n = batch_size * dim;
    relu_kernel<<<132 * 4, 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), n);
    check(cudaGetLastError());
}
