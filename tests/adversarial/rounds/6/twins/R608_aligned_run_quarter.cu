#include <kernelblaster/scalar.cuh>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

constexpr int ROWS = 4, WARPS = 8;

__device__ __forceinline__ float sigmoid(float v) { return 1.0f / (1.0f + expf(-v)); }

// ROWS rows a block, one feature a warp at a time.
__global__ void rows_kernel(scalar_t* output, const scalar_t* x, const scalar_t* w, const scalar_t* bias, int64_t rows,
                            int64_t columns, int64_t features) {
    __shared__ float sums[WARPS][ROWS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t row0 = static_cast<int64_t>(blockIdx.x) * ROWS;
    float sum[ROWS] = {};
    for (int64_t o = warp; o < features; o += WARPS) {
        float dot[ROWS] = {};
        for (int64_t j = lane; j < columns; j += 32) {
            const float v = to_float(w[o * columns + j]);
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
                if (row0 + r < rows) dot[r] += v * to_float(x[(row0 + r) * columns + j]);
        }
        const float b = to_float(bias[o]);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            for (int d = 16; d > 0; d /= 2) dot[r] += __shfl_xor_sync(0xffffffffu, dot[r], d);
            const float s = sigmoid(dot[r] + b);
            sum[r] += s;
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (lane == r) sums[warp][r] = sum[r];
    }
    __syncthreads();
    const int r = threadIdx.x;
    if (r >= ROWS || row0 + r >= rows) return;
    float total = 0.0f;
    for (int i = 0; i < WARPS; ++i) total += sums[i][r];
    output[row0 + r] = from_float(total);
}

void launch_gpu_implementation(void* output, void* x, void* linear_weight, void* linear_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features) {
    rows_kernel<<<static_cast<unsigned>((batch_size + ROWS - 1) / ROWS), WARPS * 32>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), static_cast<const scalar_t*>(linear_weight),
        static_cast<const scalar_t*>(linear_bias), batch_size, in_features, out_features);
    check(cudaGetLastError());
}
