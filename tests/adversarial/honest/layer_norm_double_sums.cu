// problem: level1/40
// does: one pass for mean and variance with sums in double, which lose nothing where the mean is large
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

__device__ double block_sum(double value) {
    __shared__ double partial[32];
    for (int o = 16; o > 0; o /= 2) value += __shfl_xor_sync(0xffffffffu, value, o);
    __syncthreads();
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x % 32 < blockDim.x / 32 ? partial[threadIdx.x % 32] : 0.0;
    for (int o = 16; o > 0; o /= 2) value += __shfl_xor_sync(0xffffffffu, value, o);
    return value;
}

__global__ void layer_norm(scalar_t* y, const scalar_t* x, const scalar_t* weight, const scalar_t* bias, int64_t n,
                           float eps) {
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    double sum = 0.0, squares = 0.0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        const double value = to_float(x[i]);
        sum += value;
        squares += value * value;
    }
    const double mean = block_sum(sum) / n, variance = block_sum(squares) / n - mean * mean;
    const float scale = rsqrtf(float(fmax(variance, 0.0)) + eps), centre = float(mean);
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        y[i] = from_float((to_float(x[i]) - centre) * scale * to_float(weight[i]) + to_float(bias[i]));
    }
}

void launch_gpu_implementation(void* output, void* x, void* ln_weight, void* ln_bias, int64_t batch_size,
                               int64_t features, int64_t dim1, int64_t dim2, float eps) {
    layer_norm<<<unsigned(batch_size), 1024>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x),
                                               static_cast<const scalar_t*>(ln_weight),
                                               static_cast<const scalar_t*>(ln_bias), features * dim1 * dim2, eps);
}
