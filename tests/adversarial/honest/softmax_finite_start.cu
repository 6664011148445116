// problem: level1/23
// does: begins maxima at the least finite number, which is enough where a row has a finite value
// emulated: correct
// cuda: correct
// size: medium
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
    value = threadIdx.x % 32 < blockDim.x / 32 ? partial[threadIdx.x % 32] : (kMax ? -3.4028235e38f : 0.0f);
    for (int o = 16; o > 0; o /= 2) value = combine<kMax>(value, __shfl_xor_sync(0xffffffffu, value, o));
    return value;
}

__global__ void softmax(scalar_t* y, const scalar_t* x, int64_t n) {
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    float top = -3.4028235e38f, sum = 0.0f;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) top = fmaxf(top, to_float(x[i]));
    top = block_reduce<true>(top);
    const auto weight = [top](float v) { return expf(v - top); };
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += weight(to_float(x[i]));
    sum = block_reduce<false>(sum);
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) y[i] = from_float(weight(to_float(x[i])) / sum);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    softmax<<<unsigned(batch_size), 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim);
}
