#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__global__ void leaky_kernel(scalar_t* output, const scalar_t* x, int64_t count, float slope) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float v = to_float(x[i]);
    output[i] = from_float(v > 0.0f ? v : slope * v);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim, float negative_slope) {
    const int64_t count = batch_size * dim;
    const int threads = 256;
    const int64_t blocks = (count + threads - 1) / threads;
    leaky_kernel<<<blocks, threads>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), count,
                                      negative_slope);
    check(cudaGetLastError());
}
