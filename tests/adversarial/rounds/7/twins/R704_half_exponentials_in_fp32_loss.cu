// Cross entropy: one block per sample writes its loss, then one block averages the losses.
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>
#include <cuda_fp16.h>

constexpr int THREADS = 128;
constexpr int WARPS = THREADS / 32;

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ __forceinline__ float warp_max(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, offset));
    return value;
}

__device__ __forceinline__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffff, value, offset);
    return value;
}
__global__ void __launch_bounds__(THREADS) sample_loss_kernel(
    float* losses, const scalar_t* predictions, const int64_t* targets, int64_t classes) {
    __shared__ float maxima[WARPS], sums[WARPS];
    const scalar_t* row = predictions + blockIdx.x * classes;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    float maximum = -INFINITY;
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < classes; i += THREADS) maximum = fmaxf(maximum, to_float(row[i]));
    maximum = warp_max(maximum);
    if (lane == 0) maxima[warp] = maximum;
    __syncthreads();
    maximum = maxima[0];
#pragma unroll
    for (int w = 1; w < WARPS; ++w) maximum = fmaxf(maximum, maxima[w]);

    float sum = 0.0f;
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < classes; i += THREADS) sum += exp2f((to_float(row[i]) - maximum) * 1.44269504f);
    sum = warp_sum(sum);
    if (lane == 0) sums[warp] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        sum = sums[0];
#pragma unroll
        for (int w = 1; w < WARPS; ++w) sum += sums[w];
        losses[blockIdx.x] = logf(sum) + maximum - to_float(row[targets[blockIdx.x]]);
    }
}

__global__ void __launch_bounds__(1024) mean_kernel(scalar_t* output, const float* losses, int64_t count) {
    __shared__ float partial[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < count; i += 1024) sum += losses[i];
    sum = warp_sum(sum);
    if (lane == 0) partial[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = warp_sum(partial[lane]);
        if (lane == 0) *output = from_float(sum / count);
    }
}

// Grown on demand and kept, so that later calls allocate nothing.
static float* workspace(int64_t count) {
    static float* buffer = nullptr;
    static int64_t capacity = 0;
    if (count > capacity) {
        check(cudaFree(buffer));
        check(cudaMalloc(reinterpret_cast<void**>(&buffer), count * sizeof(float)));
        capacity = count;
    }
    return buffer;
}

void launch_gpu_implementation(
    void* output, void* predictions, void* targets, int64_t batch_size, int64_t num_classes) {
    float* losses = workspace(batch_size);
    const scalar_t* scores = static_cast<const scalar_t*>(predictions);
    const int64_t* labels = static_cast<const int64_t*>(targets);
    sample_loss_kernel<<<batch_size, THREADS>>>(losses, scores, labels, num_classes);
    check(cudaGetLastError());
    mean_kernel<<<1, 1024>>>(static_cast<scalar_t*>(output), losses, batch_size);
    check(cudaGetLastError());
}
