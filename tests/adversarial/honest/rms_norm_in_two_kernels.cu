// problem: level1/36
// does: one kernel for the scales, into a workspace that grows and is kept; one to apply them
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

__global__ void scales(float* scale, const scalar_t* x, int64_t count, int64_t features, int64_t pixels, float eps) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const scalar_t* column = x + i / pixels * features * pixels + i % pixels;
    float sum = 0.0f;
    for (int64_t c = 0; c < features; ++c) sum = fmaf(to_float(column[c * pixels]), to_float(column[c * pixels]), sum);
    scale[i] = rsqrtf(sum / features + eps);
}

__global__ void apply(scalar_t* y, const scalar_t* x, const float* scale, int64_t n, int64_t features, int64_t pixels) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) y[i] = from_float(to_float(x[i]) * scale[i / (features * pixels) * pixels + i % pixels]);
}

static float* workspace(int64_t count) {
    static float* buffer = nullptr;
    static int64_t held = 0;
    if (count > held) {
        cudaFree(buffer);
        cudaMalloc(&buffer, count * sizeof(float));
        held = count;
    }
    return buffer;
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t features, int64_t dim1,
                               int64_t dim2, float eps) {
    const int64_t pixels = dim1 * dim2, count = batch_size * pixels, n = count * features;
    float* scale = workspace(count);
    auto in = static_cast<const scalar_t*>(x);
    scales<<<unsigned((count + 255) / 256), 256>>>(scale, in, count, features, pixels, eps);
    apply<<<unsigned((n + 255) / 256), 256>>>(static_cast<scalar_t*>(output), in, scale, n, features, pixels);
}
