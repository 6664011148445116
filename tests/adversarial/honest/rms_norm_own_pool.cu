// problem: level1/36
// does: a memory pool of its own with a release threshold, buffers from it at each call
// emulated: correct not_emulatable
// cuda: correct
#include <kernelblaster/scalar.cuh>

#include <cstdint>

__global__ void inverse_rms(float* scale, const scalar_t* x, int64_t count, int64_t channels, int64_t pixels, float eps) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float squares = 0.0f;
    const int64_t base = i / pixels * channels * pixels + i % pixels;
    for (int64_t c = 0; c < channels; ++c) squares = fmaf(to_float(x[base + c * pixels]), to_float(x[base + c * pixels]), squares);
    scale[i] = rsqrtf(squares / float(channels) + eps);
}

__global__ void apply(scalar_t* y, const scalar_t* x, const float* scale, int64_t total, int64_t channels, int64_t pixels) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < total) y[i] = from_float(to_float(x[i]) * scale[i / (channels * pixels) * pixels + i % pixels]);
}

static cudaMemPool_t own_pool() {
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.handleTypes = cudaMemHandleTypeNone;
    properties.location.type = cudaMemLocationTypeDevice;
    cudaGetDevice(&properties.location.id);
    cudaMemPool_t pool = nullptr;
    cudaMemPoolCreate(&pool, &properties);
    uint64_t keep = UINT64_MAX;
    cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep);
    return pool;
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t features, int64_t dim1, int64_t dim2, float eps) {
    static const cudaMemPool_t pool = own_pool();
    const int64_t pixels = dim1 * dim2, count = batch_size * pixels, total = count * features;
    void* scale = nullptr;
    if (cudaMallocFromPoolAsync(&scale, count * sizeof(float), pool, 0) != cudaSuccess) return;
    inverse_rms<<<unsigned((count + 127) / 128), 128>>>(static_cast<float*>(scale), static_cast<const scalar_t*>(x), count, features,
                                                        pixels, eps);
    apply<<<unsigned((total + 255) / 256), 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x),
                                                  static_cast<const float*>(scale), total, features, pixels);
    cudaFreeAsync(scale, 0);
}
