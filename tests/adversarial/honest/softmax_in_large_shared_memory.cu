// problem: level1/23
// does: keeps a row in opted-in dynamic shared memory where it fits, else reads it again
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

template <bool kMax>
__device__ float combine(float a, float b) {
    return kMax ? fmaxf(a, b) : a + b;
}

template <bool kMax>
__device__ float block_reduce(float value) {
    __shared__ float partial[32];
    for (int o = 16; o > 0; o /= 2) value = combine<kMax>(value, __shfl_xor_sync(0xffffffffu, value, o));
    __syncthreads();
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x % 32 < blockDim.x / 32 ? partial[threadIdx.x % 32] : (kMax ? -INFINITY : 0.0f);
    for (int o = 16; o > 0; o /= 2) value = combine<kMax>(value, __shfl_xor_sync(0xffffffffu, value, o));
    return value;
}

template <bool kStaged>
__global__ void softmax(scalar_t* y, const scalar_t* x, int64_t n) {
    extern __shared__ float row[];
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    float top = -INFINITY, sum = 0.0f;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        const float value = to_float(x[i]);
        if (kStaged) row[i] = value;
        top = fmaxf(top, value);
    }
    top = block_reduce<true>(top);
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += expf((kStaged ? row[i] : to_float(x[i])) - top);
    sum = block_reduce<false>(sum);
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        y[i] = from_float(expf((kStaged ? row[i] : to_float(x[i])) - top) / sum);
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    auto y = static_cast<scalar_t*>(output);
    auto in = static_cast<const scalar_t*>(x);
    const size_t bytes = dim * sizeof(float);
    if (bytes <= 96 * 1024) {
        cudaFuncSetAttribute(softmax<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, 96 * 1024);
        softmax<true><<<unsigned(batch_size), 256, 90 * 1024>>>(y, in, dim);
    } else {
        softmax<false><<<unsigned(batch_size), 256>>>(y, in, dim);
    }
}
