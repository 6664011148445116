// Activations, and kernels that compute each output element by itself.
#pragma once
#include <kernelblaster/kernels/launch.cuh>

__device__ __forceinline__ float relu(float v) { return fmaxf(v, 0.0f); }

__device__ __forceinline__ float leaky_relu(float v, float slope) { return v > 0.0f ? v : slope * v; }

__device__ __forceinline__ float sigmoid(float v) { return 1.0f / (1.0f + expf(-v)); }

__device__ __forceinline__ float swish(float v) { return v / (1.0f + expf(-v)); }

// x Phi(x), with the error function.
__device__ __forceinline__ float gelu(float v) { return 0.5f * v * (1.0f + erff(v * 0.70710678f)); }

// GELU's approximation by tanh.
__device__ __forceinline__ float gelu_tanh(float v) {
    return 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
}

// log(1 + e^v); beyond 20 that is v to the last digit of fp32.
__device__ __forceinline__ float softplus(float v) { return v > 20.0f ? v : log1pf(expf(v)); }

__device__ __forceinline__ float mish(float v) { return v * tanhf(softplus(v)); }

__device__ __forceinline__ float hardswish(float v) { return v * fminf(fmaxf(v + 3.0f, 0.0f), 6.0f) / 6.0f; }

__device__ __forceinline__ float hardsigmoid(float v) { return fminf(fmaxf(v + 3.0f, 0.0f), 6.0f) / 6.0f; }

__device__ __forceinline__ float elu(float v, float alpha) { return v > 0.0f ? v : alpha * expm1f(v); }

__device__ __forceinline__ float clamp(float v, float low, float high) { return fminf(fmaxf(v, low), high); }

template <typename Function>
__global__ void map_kernel(scalar_t* output, const scalar_t* x, int64_t count, Function function) {
    for (int64_t i = first_index(); i < count; i += index_step()) output[i] = from_float(function(to_float(x[i])));
}

// output[i] = function(x[i]), where function is `float operator()(float) const`. Both may be the same tensor.
template <typename Function>
static void map(scalar_t* output, const scalar_t* x, int64_t count, Function function) {
    map_kernel<<<blocks_for(count), THREADS>>>(output, x, count, function);
    check(cudaGetLastError());
}

template <typename Function>
__global__ void generate_kernel(scalar_t* output, int64_t count, Function function) {
    for (int64_t i = first_index(); i < count; i += index_step()) output[i] = from_float(function(i));
}

// output[i] = function(i), where function is `float operator()(int64_t) const` and reads what it needs.
template <typename Function>
static void generate(scalar_t* output, int64_t count, Function function) {
    generate_kernel<<<blocks_for(count), THREADS>>>(output, count, function);
    check(cudaGetLastError());
}
