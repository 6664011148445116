#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__global__ void __launch_bounds__(256) rms_norm(scalar_t* output, const scalar_t* x, int64_t count, int64_t features, int64_t pixels, float eps) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
    if (i >= count) return;
    const int64_t base = i / pixels * features * pixels + i % pixels;
    float sum = 0.0f;
    for (int64_t c = 0; c < features; ++c) sum += to_float(x[base + c * pixels]) * to_float(x[base + c * pixels]);
    const float rms = sqrtf(sum / features + eps);
    for (int64_t c = 0; c < features; ++c) output[base + c * pixels] = from_float(to_float(x[base + c * pixels]) / rms);
}

static void run(void* output, void* x, int64_t batch_size, int64_t features, int64_t pixels, float eps) {
    const int64_t count = batch_size * pixels;
    if (count == 0) return;
    rms_norm<<<(count + 255) / 256, 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), count, features, pixels, eps);
    check(cudaGetLastError());
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t features, int64_t dim1, int64_t dim2, float eps) {
    run(output, x, batch_size, features, dim1 * dim2, eps);
}
