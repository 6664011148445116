// problem: level1/36
// does: the fp32 problem with another order of summation
// emulated: correct
// cuda: correct
// precision: fp32
#include <kernelblaster/scalar.cuh>

__global__ void norm(scalar_t* y, const scalar_t* x, int64_t count, int64_t features, int64_t pixels, float eps) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const int64_t base = i / pixels * features * pixels + i % pixels;
    float even = 0.0f, odd = 0.0f;
    for (int64_t c = 0; c < features; c += 2) {
        const float a = to_float(x[base + c * pixels]), b = c + 1 < features ? to_float(x[base + (c + 1) * pixels]) : 0.0f;
        even += a * a;
        odd += b * b;
    }
    const float scale = rsqrtf((even + odd) / features + eps);
    for (int64_t c = 0; c < features; ++c) y[base + c * pixels] = from_float(to_float(x[base + c * pixels]) * scale);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t features, int64_t dim1,
                               int64_t dim2, float eps) {
    const int64_t pixels = dim1 * dim2, count = batch_size * pixels;
    norm<<<unsigned((count + 127) / 128), 128>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), count,
                                                 features, pixels, eps);
}
