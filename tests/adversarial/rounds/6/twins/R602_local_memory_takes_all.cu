#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ float warp_max(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, offset));
    return value;
}

__device__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffff, value, offset);
    return value;
}

template <bool Maximum>
__device__ float block_reduce(float value) {
    __shared__ float partial[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    value = Maximum ? warp_max(value) : warp_sum(value);
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    value = lane < warps ? partial[lane] : (Maximum ? -INFINITY : 0.0f);
    value = Maximum ? warp_max(value) : warp_sum(value);
    __syncthreads();
    return value;
}

__global__ void softmax_kernel(scalar_t* output, const scalar_t* x, int64_t dim) {
    const scalar_t* row = x + blockIdx.x * dim;
    scalar_t* out = output + blockIdx.x * dim;

    float maximum = -INFINITY;
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) maximum = fmaxf(maximum, to_float(row[i]));
    maximum = block_reduce<true>(maximum);

    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) sum += expf(to_float(row[i]) - maximum);
    sum = block_reduce<false>(sum);

    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) out[i] = from_float(expf(to_float(row[i]) - maximum) / sum);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    softmax_kernel<<<batch_size, 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim);
    check(cudaGetLastError());
}
