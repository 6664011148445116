#include <kernelblaster/scalar.cuh>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

constexpr int THREADS = 256;

__device__ float block_max(float v) {
    __shared__ float part[THREADS / 32];
    for (int o = 16; o > 0; o /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, o));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    for (int i = 0; i < THREADS / 32; ++i) v = fmaxf(v, part[i]);
    return v;
}
__device__ float block_sum(float v) {
    __shared__ float part[THREADS / 32];
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffff, v, o);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0.0f;
    for (int i = 0; i < THREADS / 32; ++i) v += part[i];
    return v;
}

__global__ void softmax_kernel(scalar_t* out, const scalar_t* x, int64_t dim) {
    x += blockIdx.x * dim;
    out += blockIdx.x * dim;
    float most = -INFINITY, sum = 0.0f;
    for (int64_t i = threadIdx.x; i < dim; i += THREADS) most = fmaxf(most, to_float(x[i]));
    most = block_max(most);
    for (int64_t i = threadIdx.x; i < dim; i += THREADS) sum += expf(to_float(x[i]) - most);
    const float scale = 1.0f / block_sum(sum);
    for (int64_t i = threadIdx.x; i < dim; i += THREADS) out[i] = from_float(expf(to_float(x[i]) - most) * scale);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    softmax_kernel<<<batch_size, THREADS>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim);
    check(cudaGetLastError());
}
