// problem: level1/36
// does: takes block size from the occupancy API and as much dynamic shared memory as the device lets it
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <algorithm>

// Channels of a pixel wait in shared memory, one column per thread, as far as they fit.
__global__ void rms_norm(scalar_t* y, const scalar_t* x, int64_t count, int64_t channels, int64_t pixels, int kept, float eps) {
    extern __shared__ float held[];
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const int64_t base = i / pixels * channels * pixels + i % pixels;
    float squares = 0.0f;
    for (int64_t c = 0; c < channels; ++c) {
        const float v = to_float(x[base + c * pixels]);
        if (c < kept) held[c * blockDim.x + threadIdx.x] = v;
        squares += v * v;
    }
    const float rms = sqrtf(squares / float(channels) + eps);
    for (int64_t c = 0; c < channels; ++c) {
        const float v = c < kept ? held[c * blockDim.x + threadIdx.x] : to_float(x[base + c * pixels]);
        y[base + c * pixels] = from_float(v / rms);
    }
}

struct Launch {
    int threads = 128, kept = 0;
    size_t shared = 0;
};

static Launch configure(int64_t channels) {
    int device = 0, most = 0, least_grid = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    cudaFuncSetAttribute(rms_norm, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
    cudaFuncSetAttribute(rms_norm, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
    Launch launch;
    const auto shared_for = [channels, most](int threads) {
        return size_t(std::min<int64_t>(channels * threads * int64_t(sizeof(float)), most));
    };
    cudaOccupancyMaxPotentialBlockSizeVariableSMem(&least_grid, &launch.threads, rms_norm, shared_for, 256);
    launch.threads = std::max(32, launch.threads / 32 * 32);
    launch.kept = int(shared_for(launch.threads) / sizeof(float)) / launch.threads;
    launch.shared = size_t(launch.kept) * launch.threads * sizeof(float);
    return launch;
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t features, int64_t dim1, int64_t dim2, float eps) {
    static int64_t configured_for = -1;
    static Launch launch;
    if (configured_for != features) {
        launch = configure(features);
        configured_for = features;
    }
    const int64_t pixels = dim1 * dim2, count = batch_size * pixels;
    rms_norm<<<unsigned((count + launch.threads - 1) / launch.threads), launch.threads, launch.shared>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), count, features, pixels, launch.kept, eps);
}
