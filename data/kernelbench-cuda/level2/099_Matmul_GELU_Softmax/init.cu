// softmax(gelu(x W^T + b)): a tiled matrix product, then softmax in place with one block per row.
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

constexpr int TILE = 16;

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

__device__ float gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }

__global__ void linear_gelu_kernel(
    scalar_t* output, const scalar_t* x, const scalar_t* weight, const scalar_t* bias, int64_t rows,
    int64_t in_features, int64_t out_features) {
    __shared__ float x_tile[TILE][TILE];
    __shared__ float weight_tile[TILE][TILE + 1];  // padded: threads of a warp read down a column
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int64_t row = static_cast<int64_t>(blockIdx.y) * TILE + ty;
    const int64_t col = static_cast<int64_t>(blockIdx.x) * TILE + tx;
    const int64_t weight_row = static_cast<int64_t>(blockIdx.x) * TILE + ty;

    float sum = 0.0f;
    for (int64_t k0 = 0; k0 < in_features; k0 += TILE) {
        const int64_t k = k0 + tx;
        x_tile[ty][tx] = row < rows && k < in_features ? to_float(x[row * in_features + k]) : 0.0f;
        weight_tile[ty][tx] =
            weight_row < out_features && k < in_features ? to_float(weight[weight_row * in_features + k]) : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += x_tile[ty][i] * weight_tile[tx][i];
        __syncthreads();
    }
    if (row < rows && col < out_features) {
        output[row * out_features + col] = from_float(gelu(sum + to_float(bias[col])));
    }
}

__global__ void softmax_kernel(scalar_t* data, int64_t dim) {
    scalar_t* row = data + blockIdx.x * dim;

    float maximum = -INFINITY;
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) maximum = fmaxf(maximum, to_float(row[i]));
    maximum = block_max(maximum);

    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) sum += expf(to_float(row[i]) - maximum);
    sum = block_sum(sum);

    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) row[i] = from_float(expf(to_float(row[i]) - maximum) / sum);
}

void launch_gpu_implementation(void* output, void* x, void* linear_weight, void* linear_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features) {
    const dim3 blocks((out_features + TILE - 1) / TILE, (batch_size + TILE - 1) / TILE);
    linear_gelu_kernel<<<blocks, dim3(TILE, TILE)>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), static_cast<const scalar_t*>(linear_weight),
        static_cast<const scalar_t*>(linear_bias), batch_size, in_features, out_features);
    check(cudaGetLastError());
    softmax_kernel<<<batch_size, 256>>>(static_cast<scalar_t*>(output), out_features);
    check(cudaGetLastError());
}
