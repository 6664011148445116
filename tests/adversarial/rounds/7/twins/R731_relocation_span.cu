// RMSNorm over channels: one thread per pixel, neighbouring threads read neighbouring pixels; four channels in flight.
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__global__ void rms_norm_kernel(
    scalar_t* output, const scalar_t* x, int64_t batch_size, int64_t features, int64_t pixels, float eps) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= batch_size * pixels) return;
    const int64_t base = i / pixels * features * pixels + i % pixels;

    float sum = 0.0f;
#pragma unroll 4
    for (int64_t c = 0; c < features; ++c) {
        const float value = to_float(x[base + c * pixels]);
        sum += value * value;
    }
    const float scale = 1.0f / sqrtf(sum / features + eps);
#pragma unroll 4
    for (int64_t c = 0; c < features; ++c) {
        output[base + c * pixels] = from_float(to_float(x[base + c * pixels]) * scale);
    }
}

void launch_gpu_implementation(
    void* output, void* x, int64_t batch_size, int64_t features, int64_t dim1, int64_t dim2, float eps) {
    const int64_t pixels = dim1 * dim2;
    const int threads = 256;
    const int64_t blocks = (batch_size * pixels + threads - 1) / threads;
    rms_norm_kernel<<<blocks, threads>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), batch_size, features, pixels, eps);
    check(cudaGetLastError());
}
