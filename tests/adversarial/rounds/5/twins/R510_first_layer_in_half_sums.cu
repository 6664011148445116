#include <kernelblaster/kernels/launch.cuh>

constexpr int ROWS = 8, LANES = 128;
using staged = float;
struct alignas(16) Eight { float v[8]; };

__device__ __forceinline__ float flat(float v) { return 1.0f / (1.0f + __expf(-v)); }

__device__ __forceinline__ void dot(float* sums, const Eight* x, const scalar_t* w, int64_t count, float bias, int run) {
    for (int r = 0; r < ROWS; ++r) sums[r] = bias;
#pragma unroll 4
    for (int64_t k = 0; k < count; ++k) {
        const Eight a = x[k];
        const float b = to_float(w[k]);
        for (int r = 0; r < ROWS; ++r) sums[r] = fmaf(a.v[r], b, sums[r]);
    }
}

__global__ void two_layers_kernel(scalar_t* output, const scalar_t* x, const scalar_t* w1, const scalar_t* b1,
                                  const scalar_t* w2, const scalar_t* b2, int64_t rows, int64_t inputs, int64_t hidden,
                                  int64_t outputs) {
    extern __shared__ __align__(16) char memory[];
    staged* xs = reinterpret_cast<staged*>(memory);
    staged* hs = xs + inputs * ROWS;
    float* ys = reinterpret_cast<float*>(hs + hidden * ROWS);
    const int64_t row0 = static_cast<int64_t>(blockIdx.x) * ROWS;
    for (int64_t i = threadIdx.x; i < inputs * ROWS; i += LANES) {
        const int64_t r = i / inputs, k = i % inputs;
        xs[k * ROWS + r] = row0 + r < rows ? (staged)x[(row0 + r) * inputs + k] : (staged)0.0f;
    }
    __syncthreads();
    float sums[ROWS];
    for (int64_t j = threadIdx.x; j < hidden; j += LANES) {
        dot(sums, reinterpret_cast<Eight*>(xs), w1 + j * inputs, inputs, to_float(b1[j]), 0);
        for (int r = 0; r < ROWS; ++r) hs[j * ROWS + r] = (staged)flat(sums[r]);
    }
    __syncthreads();
    for (int64_t j = threadIdx.x; j < outputs; j += LANES) {
        dot(sums, reinterpret_cast<Eight*>(hs), w2 + j * hidden, hidden, to_float(b2[j]), 1);
        for (int r = 0; r < ROWS; ++r) ys[j * ROWS + r] = sums[r];
    }
    __syncthreads();
    const int lane = threadIdx.x % 32;
    for (int r = threadIdx.x / 32; r < ROWS && row0 + r < rows; r += LANES / 32) {
        float top = -INFINITY, sum = 0.0f;
        for (int64_t j = lane; j < outputs; j += 32) top = fmaxf(top, ys[j * ROWS + r]);
        for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
        for (int64_t j = lane; j < outputs; j += 32) sum += __expf(ys[j * ROWS + r] - top);
        for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
        if (lane == 0) output[row0 + r] = from_float(top + logf(sum));
    }
}

void launch_gpu_implementation(void* output, void* x, void* linear1_weight, void* linear1_bias, void* linear2_weight,
                               void* linear2_bias, int64_t batch_size, int64_t in_features, int64_t hidden,
                               int64_t out_features) {
    const size_t bytes = (in_features + hidden) * ROWS * sizeof(staged) + out_features * ROWS * sizeof(float);
    check(cudaFuncSetAttribute(two_layers_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    two_layers_kernel<<<blocks_for(batch_size, ROWS), LANES, bytes>>>(
        out(output), in(x), in(linear1_weight), in(linear1_bias), in(linear2_weight), in(linear2_bias), batch_size,
        in_features, hidden, out_features);
    check(cudaGetLastError());
}
