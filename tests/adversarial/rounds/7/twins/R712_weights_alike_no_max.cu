// softmax(gelu(x W^T + b)): a tiled product with GELU, then softmax with one block per row.
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
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

__device__ __forceinline__ float warp_max(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, offset));
    return value;
}

__device__ __forceinline__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffff, value, offset);
    return value;
}

// Every thread of the block receives the maximum.
__device__ float block_max(float value) {
    __shared__ float partial[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    value = warp_max(value);
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    value = warp_max(lane < warps ? partial[lane] : -INFINITY);
    __syncthreads();
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

constexpr int TILE = 16, DEPTH = 64;

__device__ __forceinline__ float gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }

__global__ void __launch_bounds__(TILE * TILE) linear_kernel(
    float* result, const scalar_t* x, const scalar_t* weight, const scalar_t* bias,
    int64_t rows, int64_t in_features, int64_t out_features) {
    __shared__ float x_tile[TILE][DEPTH];
    __shared__ float w_tile[TILE][DEPTH + 1];
    const int tx = threadIdx.x % TILE, ty = threadIdx.x / TILE;
    const int64_t row = static_cast<int64_t>(blockIdx.y) * TILE + ty;
    const int64_t col = static_cast<int64_t>(blockIdx.x) * TILE + tx;
    const int64_t weight_row = static_cast<int64_t>(blockIdx.x) * TILE + ty;

    float sum = 0.0f;
    for (int64_t k0 = 0; k0 < in_features; k0 += DEPTH) {
#pragma unroll
        for (int i = tx; i < DEPTH; i += TILE) {
            const int64_t k = k0 + i;
            const float value = row < rows && k < in_features ? to_float(x[row * in_features + k]) : 0.0f;
            x_tile[ty][i] = value;
            w_tile[ty][i] =
                weight_row < out_features && k < in_features ? to_float(weight[weight_row * in_features + k]) : 0.0f;
        }
        __syncthreads();
#pragma unroll 16
        for (int i = 0; i < DEPTH; ++i) sum += x_tile[ty][i] * w_tile[tx][i];
        __syncthreads();
    }
    if (row < rows && col < out_features) result[row * out_features + col] = gelu(sum + to_float(bias[col]));
}

__global__ void __launch_bounds__(256) finish_kernel(scalar_t* output, const float* result, int64_t dim) {
    const float* row = result + blockIdx.x * dim;
    scalar_t* out = output + blockIdx.x * dim;

    float maximum = -INFINITY;
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) maximum = fmaxf(maximum, row[i]);
    maximum = block_max(maximum);
    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) sum += __expf(row[i] - maximum);
    const float scale = 1.0f / block_sum(sum);
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) out[i] = from_float(__expf(row[i] - maximum) * scale);
}

void launch_gpu_implementation(void* output, void* x, void* linear_weight, void* linear_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features) {
    const int64_t parts = (out_features + TILE - 1) / TILE;
    float* result = workspace(batch_size * out_features);
    linear_kernel<<<dim3(parts, (batch_size + TILE - 1) / TILE), TILE * TILE>>>(
        result, static_cast<const scalar_t*>(x), static_cast<const scalar_t*>(linear_weight),
        static_cast<const scalar_t*>(linear_bias), batch_size, in_features, out_features);
    check(cudaGetLastError());
    finish_kernel<<<batch_size, 256>>>(static_cast<scalar_t*>(output), result, out_features);
    check(cudaGetLastError());
}
