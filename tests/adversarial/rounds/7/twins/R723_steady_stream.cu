// relu(x W^T + bias): one output per thread, deep tiles in shared memory.
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

constexpr int TILE = 16;  // outputs per side of a block
constexpr int STEP = 64;  // elements of the inner extent staged at a time
constexpr int THREADS = TILE * TILE;

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

// The dot product of row `row` of x and row `col` of weight; called by all threads of a block.
__device__ __forceinline__ float tile_dot(const scalar_t* x, const scalar_t* weight, int64_t rows, int64_t depth,
                                          int64_t cols) {
    __shared__ float x_tile[TILE][STEP];
    __shared__ float weight_tile[TILE][STEP + 1];  // padded: threads of a warp read down a column
    const int tx = threadIdx.x, ty = threadIdx.y, tid = ty * TILE + tx;
    const int64_t row0 = static_cast<int64_t>(blockIdx.y) * TILE, col0 = static_cast<int64_t>(blockIdx.x) * TILE;
    float sum = 0.0f;
    for (int64_t k0 = 0; k0 < depth; k0 += STEP) {
#pragma unroll
        for (int j = 0; j < TILE * STEP / THREADS; ++j) {
            const int r = (tid + j * THREADS) / STEP, c = (tid + j * THREADS) % STEP;
            const int64_t k = k0 + c;
            x_tile[r][c] = row0 + r < rows && k < depth ? to_float(x[(row0 + r) * depth + k]) : 0.0f;
            weight_tile[r][c] = col0 + r < cols && k < depth ? to_float(weight[(col0 + r) * depth + k]) : 0.0f;
        }
        __syncthreads();
#pragma unroll 16
        for (int i = 0; i < STEP; ++i) sum += x_tile[ty][i] * weight_tile[tx][i];
        __syncthreads();
    }
    return sum;
}

__global__ void __launch_bounds__(THREADS) linear_relu_kernel(
    scalar_t* output, const scalar_t* x, const scalar_t* weight, const scalar_t* bias, int64_t rows, int64_t depth,
    int64_t cols) {
    const int64_t row = static_cast<int64_t>(blockIdx.y) * TILE + threadIdx.y;
    const int64_t col = static_cast<int64_t>(blockIdx.x) * TILE + threadIdx.x;
    const float sum = tile_dot(x, weight, rows, depth, cols);
    if (row < rows && col < cols) output[row * cols + col] = from_float(fmaxf(sum + to_float(bias[col]), 0.0f));
}

void launch_gpu_implementation(void* output, void* x, void* bias, void* gemm_weight, int64_t batch_size,
                               int64_t in_features, int64_t out_features) {
    const dim3 blocks((out_features + TILE - 1) / TILE, (batch_size + TILE - 1) / TILE);
    linear_relu_kernel<<<blocks, dim3(TILE, TILE)>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), static_cast<const scalar_t*>(gemm_weight),
        static_cast<const scalar_t*>(bias), batch_size, in_features, out_features);
    check(cudaGetLastError());
}
