// problem: level1/23
// precision: fp16
// kind: honest
// expects: the sum is taken about a guess of the maximum (from the row's first elements), checked against the true one and taken again if 40 apart; exp2 by a polynomial of degree 6 without the special function unit; to be called correct
// size: medium
#include <kernelblaster/kernels/softmax.cuh>

constexpr int V = 16 / sizeof(scalar_t);

// 16 bytes of a tensor as floats, and back.
__device__ __forceinline__ void load_vector(float (&v)[V], const scalar_t* from) {
    __align__(16) scalar_t raw[V];
    *reinterpret_cast<uint4*>(raw) = *reinterpret_cast<const uint4*>(from);
#pragma unroll
    for (int i = 0; i < V; ++i) v[i] = to_float(raw[i]);
}

__device__ __forceinline__ void store_vector(scalar_t* to, const float (&v)[V]) {
    __align__(16) scalar_t raw[V];
#pragma unroll
    for (int i = 0; i < V; ++i) raw[i] = from_float(v[i]);
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(raw);
}

constexpr int WIDE = 1024;

// 2^x to some 1e-7, for x <= 127; below -125 it is nothing.
__device__ __forceinline__ float exp2_polynomial(float x) {
    if (x < -125.0f) return 0.0f;
    const float shifted = x + 12582912.0f;  // rounds to a whole number in the low bits
    const float f = x - (shifted - 12582912.0f);
    float p = 1.5403530e-4f;
    p = fmaf(p, f, 1.3333558e-3f);
    p = fmaf(p, f, 9.6181291e-3f);
    p = fmaf(p, f, 5.5504109e-2f);
    p = fmaf(p, f, 2.4022651e-1f);
    p = fmaf(p, f, 6.9314718e-1f);
    p = fmaf(p, f, 1.0f);
    return __int_as_float(__float_as_int(p) + (__float_as_int(shifted) << 23));
}

constexpr float LOG2_E = 1.4426950408889634f;

__device__ float sum_about(const scalar_t* row, int64_t vectors, float shift, float* largest) {
    float sums[V] = {}, top = -INFINITY;
    for (int64_t i = threadIdx.x; i < vectors; i += WIDE) {
        float v[V];
        load_vector(v, row + i * V);
#pragma unroll
        for (int j = 0; j < V; ++j) {
            top = fmaxf(top, v[j]);
            sums[j] += exp2_polynomial(fminf((v[j] - shift) * LOG2_E, 60.0f));
        }
    }
    *largest = block_reduce(top, Max());
    return block_reduce(((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7])), Sum());
}

__global__ void __launch_bounds__(WIDE) long_rows_kernel(scalar_t* output, const scalar_t* x, int64_t dim) {
    const scalar_t* row = x + blockIdx.x * dim;
    const int64_t vectors = dim / V;
    const float first = threadIdx.x < dim ? to_float(row[threadIdx.x]) : -INFINITY;
    float shift = block_reduce(first, Max()), largest;
    if (shift == -INFINITY) shift = 0.0f;
    float sum = sum_about(row, vectors, shift, &largest);
    if (!(fabsf(largest - shift) < 40.0f)) {
        shift = largest;
        sum = sum_about(row, vectors, shift, &largest);
    }
    const float scale = 1.0f / sum;
    for (int64_t i = threadIdx.x; i < vectors; i += WIDE) {
        float v[V];
        load_vector(v, row + i * V);
#pragma unroll
        for (int j = 0; j < V; ++j) v[j] = exp2_polynomial((v[j] - shift) * LOG2_E) * scale;
        store_vector(output + blockIdx.x * dim + i * V, v);
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    if (dim % V != 0) {
        softmax(out(output), in(x), AxisView{batch_size, dim, 1});
        return;
    }
    long_rows_kernel<<<blocks_for(batch_size, 1), WIDE>>>(out(output), in(x), dim);
    check(cudaGetLastError());
}
