// problem: level1/23
// does: sets lines of L2 aside for rows that it reads three times, by an attribute of the launch
// emulated: correct
// cuda: correct
// size: medium
// twin: init
#include <kernelblaster/scalar.cuh>

#include <algorithm>
#include <math_constants.h>

__device__ float reduced(float value, bool maximum) {
    __shared__ float shared[32];
    for (int o = 16; o > 0; o /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, value, o);
        value = maximum ? fmaxf(value, other) : value + other;
    }
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    value = shared[0];
    for (int i = 1; i < int(blockDim.x / 32); ++i) value = maximum ? fmaxf(value, shared[i]) : value + shared[i];
    __syncthreads();
    return value;
}

__global__ void softmax(scalar_t* y, const scalar_t* x, int64_t dim) {
    const scalar_t* row = x + blockIdx.x * dim;
    float maximum = -CUDART_INF_F, sum = 0.0f;
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) maximum = fmaxf(maximum, to_float(row[i]));
    maximum = reduced(maximum, true);
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) sum += expf(to_float(row[i]) - maximum);
    sum = reduced(sum, false);
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) {
        y[blockIdx.x * dim + i] = from_float(expf(to_float(row[i]) - maximum) / sum);
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    static int most = -1, window = 0;
    if (most < 0) {
        cudaDeviceGetAttribute(&most, cudaDevAttrMaxPersistingL2CacheSize, 0);
        cudaDeviceGetAttribute(&window, cudaDevAttrMaxAccessPolicyWindowSize, 0);
        cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, size_t(most));
    }
    const size_t bytes = size_t(batch_size) * dim * sizeof(scalar_t);
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeAccessPolicyWindow;
    attribute.val.accessPolicyWindow.base_ptr = x;
    attribute.val.accessPolicyWindow.num_bytes = std::min(bytes, size_t(window));
    attribute.val.accessPolicyWindow.hitRatio = std::min(1.0f, float(most) / float(bytes));
    attribute.val.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    attribute.val.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(unsigned(batch_size));
    config.blockDim = dim3(512);
    config.attrs = &attribute;
    config.numAttrs = most > 0 ? 1 : 0;
    cudaLaunchKernelEx(&config, softmax, static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim);
}
