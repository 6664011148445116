#include <kernelblaster/scalar.cuh>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

constexpr int THREADS = 256, ROWS = 8;

// Sums over the rows of the weight: 32 columns a block, 8 threads a column.
__global__ void column_kernel(float* sums, const scalar_t* w, int64_t columns, int64_t hidden) {
    __shared__ float partial[8][33];
    const int64_t j = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x;
    float sum = 0.0f;
    if (j < columns)
        for (int64_t o = threadIdx.y; o < hidden; o += 8) sum += to_float(w[o * columns + j]);
    partial[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && j < columns) {
        for (int i = 1; i < 8; ++i) sum += partial[i][threadIdx.x];
        sums[j] = sum;
    }
}

__global__ void dot_kernel(scalar_t* output, const scalar_t* x, const float* sums, int64_t rows, int64_t columns,
                           float factor) {
    __shared__ float partial[ROWS][THREADS / 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum[ROWS] = {};
    const int64_t row0 = static_cast<int64_t>(blockIdx.x) * ROWS;
    for (int64_t j = threadIdx.x; j < columns; j += THREADS) {
        const float column = sums[j];
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
            if (row0 + r < rows) sum[r] += to_float(x[(row0 + r) * columns + j]) * column;
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        for (int d = 16; d > 0; d /= 2) sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], d);
        if (lane == 0) partial[r][warp] = sum[r];
    }
    __syncthreads();
    if (threadIdx.x < ROWS && row0 + threadIdx.x < rows) {
        float total = 0.0f;
        for (int i = 0; i < THREADS / 32; ++i) total += partial[threadIdx.x][i];
        output[row0 + threadIdx.x] = from_float(total * 0.5f * factor);
    }
}

void launch_gpu_implementation(void* output, void* x, void* weight, int64_t batch_size, int64_t in_features,
                               int64_t hidden, float scaling_factor) {
    static float* sums = nullptr;
    static int64_t room = 0;
    if (in_features > room) {
        check(cudaFree(sums));
        check(cudaMalloc(&sums, in_features * sizeof(float)));
        room = in_features;
    }
    column_kernel<<<static_cast<unsigned>((in_features + 31) / 32), dim3(32, 8)>>>(
        sums, static_cast<const scalar_t*>(weight), in_features, hidden);
    check(cudaGetLastError());
    dot_kernel<<<static_cast<unsigned>((batch_size + ROWS - 1) / ROWS), THREADS>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), sums, batch_size, in_features, scaling_factor);
    check(cudaGetLastError());
}
