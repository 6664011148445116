// problem: level1/19
// does: cudaLaunchKernelExC with an access policy window as attribute, streaming loads and stores by intrinsics
// emulated: correct
// cuda: correct
// precision: fp32
// size: medium
#include <kernelblaster/scalar.cuh>

__global__ void relu4(float4* y, const float4* x, int64_t n) {
    int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    for (; i < n; i += int64_t(gridDim.x) * blockDim.x) {
        float4 v = __ldcs(x + i);
        v.x = v.x < 0.0f ? 0.0f : v.x;
        v.y = v.y < 0.0f ? 0.0f : v.y;
        v.z = v.z < 0.0f ? 0.0f : v.z;
        v.w = v.w < 0.0f ? 0.0f : v.w;
        __stcs(y + i, v);
    }
}

__global__ void relu1(float* y, const float* x, int64_t n) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] < 0.0f ? 0.0f : x[i];
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const int64_t n = batch_size * dim;
    cudaLaunchAttribute attributes[1] = {};
    attributes[0].id = cudaLaunchAttributeAccessPolicyWindow;
    cudaAccessPolicyWindow& window = attributes[0].val.accessPolicyWindow;
    window.base_ptr = x;
    window.num_bytes = size_t(n < (1 << 20) ? n : 1 << 20) * sizeof(float);
    window.hitRatio = 1.0f;
    window.hitProp = cudaAccessPropertyStreaming;
    window.missProp = cudaAccessPropertyNormal;
    cudaLaunchConfig_t config = {};
    config.attrs = attributes;
    config.numAttrs = 1;

    const bool vectors = n % 4 == 0;
    int64_t items = vectors ? n / 4 : n;
    void* arguments[] = {&output, &x, &items};
    config.blockDim = dim3(256);
    config.gridDim = dim3(unsigned((items + 255) / 256));
    const void* kernel = vectors ? reinterpret_cast<const void*>(relu4) : reinterpret_cast<const void*>(relu1);
    cudaLaunchKernelExC(&config, kernel, arguments);
}
