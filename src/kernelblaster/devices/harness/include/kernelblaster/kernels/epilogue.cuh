// What a product or convolution does to each sum before it stores it.
//
// An epilogue is `float operator()(float sum, int64_t index, int64_t channel) const`: `index` is that of the output
// element in memory, `channel` its column or channel.
#pragma once
#include <kernelblaster/kernels/elementwise.cuh>

// Stores the sum.
struct Plain {
    __device__ float operator()(float sum, int64_t, int64_t) const { return sum; }
};

// Adds a bias per channel.
struct Bias {
    const scalar_t* bias;
    __device__ float operator()(float sum, int64_t, int64_t channel) const { return sum + to_float(bias[channel]); }
};

// Adds a bias per channel and rectifies.
struct BiasRelu {
    const scalar_t* bias;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return relu(sum + to_float(bias[channel]));
    }
};
