// LayerNorm: one block per sample, three passes (mean, variance, write).
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffff, value, offset);
    return value;
}

// Every thread of the block receives the sum.
__device__ float block_sum(float value) {
    __shared__ float partial[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    value = warp_sum(value);
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    value = warp_sum(lane < warps ? partial[lane] : 0.0f);
    __syncthreads();
    return value;
}

__global__ void __launch_bounds__(1024) layer_norm_kernel(
    scalar_t* output, const scalar_t* x, const scalar_t* weight, const scalar_t* bias, int64_t count, float eps) {
    const scalar_t* sample = x + blockIdx.x * count;
    scalar_t* out = output + blockIdx.x * count;

    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += to_float(sample[i]);
    const float mean = block_sum(sum) / count;

    float squares = 0.0f;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
        const float centred = to_float(sample[i]) - mean;
        squares += centred * centred;
    }
    const float scale = rsqrtf(block_sum(squares) / count + eps);

    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
        out[i] = from_float((to_float(sample[i]) - mean) * scale * to_float(weight[i]) + to_float(bias[i]));
    }
}

void launch_gpu_implementation(void* output, void* x, void* ln_weight, void* ln_bias, int64_t batch_size,
                               int64_t features, int64_t dim1, int64_t dim2, float eps) {
    const int64_t count = features * dim1 * dim2;
    layer_norm_kernel<<<batch_size, 1024>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), static_cast<const scalar_t*>(ln_weight),
        static_cast<const scalar_t*>(ln_bias), count, eps);
    check(cudaGetLastError());
}
