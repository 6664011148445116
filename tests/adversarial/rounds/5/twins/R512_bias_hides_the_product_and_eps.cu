#include <kernelblaster/kernels/launch.cuh>

constexpr int ROWS = 8, LANES = 64;
using staged = float;
struct alignas(16) Eight { float v[8]; };

__device__ float all(float v) {
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
    return v;
}

__global__ void linear_norm_kernel(scalar_t* output, const scalar_t* x, const scalar_t* outer, const scalar_t* weight,
                                   const scalar_t* inner, const scalar_t* scale, const scalar_t* shift, int64_t rows,
                                   int64_t inputs, int64_t outputs, int size, float eps) {
    extern __shared__ __align__(16) char memory[];
    staged* xs = reinterpret_cast<staged*>(memory);
    float* ys = reinterpret_cast<float*>(xs + inputs * ROWS);
    const int64_t row0 = static_cast<int64_t>(blockIdx.x) * ROWS, first = static_cast<int64_t>(blockIdx.y) * size;
    for (int64_t i = threadIdx.x; i < inputs * ROWS; i += LANES) {
        const int64_t r = i / inputs, k = i % inputs;
        xs[k * ROWS + r] = row0 + r < rows ? (staged)x[(row0 + r) * inputs + k] : (staged)0.0f;
    }
    __syncthreads();
    for (int c = threadIdx.x; c < size; c += LANES) {
        const scalar_t* w = weight + (first + c) * inputs;
        float sums[ROWS];
        for (int r = 0; r < ROWS; ++r) sums[r] = to_float(inner[first + c]);
#pragma unroll 4
        for (int64_t k = 0; k < inputs; ++k) {
            const Eight a = reinterpret_cast<const Eight*>(xs)[k];
            const float b = to_float(w[k]);
            for (int r = 0; r < ROWS; ++r) sums[r] = fmaf(a.v[r], b, sums[r]);
        }
        for (int r = 0; r < ROWS; ++r) {
            ys[c * ROWS + r] = sums[r] / (1.0f + __expf(-sums[r])) + to_float(outer[first + c]);
        }
    }
    __syncthreads();
    const int lane = threadIdx.x % 32;
    for (int r = threadIdx.x / 32; r < ROWS && row0 + r < rows; r += LANES / 32) {
        float sum = 0.0f, square = 0.0f;
        for (int c = lane; c < size; c += 32) sum += ys[c * ROWS + r];
        const float mean = all(sum) / size;
        for (int c = lane; c < size; c += 32) {
            const float v = ys[c * ROWS + r] - mean;
            square += v * v;
        }
        const float factor = rsqrtf(all(square) / size + eps);
        for (int c = lane; c < size; c += 32) {
            const float v = (ys[c * ROWS + r] - mean) * factor;
            output[(row0 + r) * outputs + first + c] = from_float(v * to_float(scale[first + c]) + to_float(shift[first + c]));
        }
    }
}

void launch_gpu_implementation(void* output, void* x, void* bias, void* matmul_weight, void* matmul_bias,
                               void* group_norm_weight, void* group_norm_bias, int64_t batch_size, int64_t in_features,
                               int64_t out_features, int64_t num_groups, float eps) {
    const int size = out_features / num_groups;
    const size_t bytes = in_features * ROWS * sizeof(staged) + size * ROWS * sizeof(float);
    check(cudaFuncSetAttribute(linear_norm_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    linear_norm_kernel<<<dim3(blocks_for(batch_size, ROWS), num_groups), LANES, bytes>>>(
        out(output), in(x), in(bias), in(matmul_weight), in(matmul_bias), in(group_norm_weight), in(group_norm_bias),
        batch_size, in_features, out_features, size, eps);
    check(cudaGetLastError());
}
