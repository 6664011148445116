// Softmax and its kin along any axis: one block per line, three passes (maximum, sum, write).
#pragma once
#include <kernelblaster/kernels/reduce.cuh>

struct SoftmaxValue {
    __device__ float operator()(float shifted, float sum) const { return expf(shifted) / sum; }
};

struct LogSoftmaxValue {
    __device__ float operator()(float shifted, float sum) const { return shifted - logf(sum); }
};

// value(x - maximum, sum of exp(x - maximum)) of each element of a line.
template <typename Value>
__global__ void softmax_kernel(scalar_t* output, const scalar_t* x, AxisView view, Value value) {
    for (int64_t line = blockIdx.x; line < view.lines(); line += gridDim.x) {
        const int64_t base = view.base(line);
        float maximum = -INFINITY;
        for (int64_t i = threadIdx.x; i < view.extent; i += blockDim.x) {
            maximum = fmaxf(maximum, to_float(x[base + i * view.inner]));
        }
        maximum = block_reduce(maximum, Max());

        float sum = 0.0f;
        for (int64_t i = threadIdx.x; i < view.extent; i += blockDim.x) {
            sum += expf(to_float(x[base + i * view.inner]) - maximum);
        }
        sum = block_reduce(sum, Sum());

        for (int64_t i = threadIdx.x; i < view.extent; i += blockDim.x) {
            const int64_t at = base + i * view.inner;
            output[at] = from_float(value(to_float(x[at]) - maximum, sum));
        }
    }
}

// Softmax along an axis, or log-softmax with LogSoftmaxValue(). `output` may be `x`.
template <typename Value = SoftmaxValue>
static void softmax(scalar_t* output, const scalar_t* x, AxisView view, Value value = Value()) {
    softmax_kernel<<<blocks_for(view.lines(), 1), THREADS>>>(output, x, view, value);
    check(cudaGetLastError());
}

// output[line] = log(sum(exp(x))) along an axis, one block per line.
__global__ void logsumexp_kernel(scalar_t* output, const scalar_t* x, AxisView view) {
    for (int64_t line = blockIdx.x; line < view.lines(); line += gridDim.x) {
        const int64_t base = view.base(line);
        float maximum = -INFINITY;
        for (int64_t i = threadIdx.x; i < view.extent; i += blockDim.x) {
            maximum = fmaxf(maximum, to_float(x[base + i * view.inner]));
        }
        maximum = block_reduce(maximum, Max());
        float sum = 0.0f;
        for (int64_t i = threadIdx.x; i < view.extent; i += blockDim.x) {
            sum += expf(to_float(x[base + i * view.inner]) - maximum);
        }
        sum = block_reduce(sum, Sum());
        if (threadIdx.x == 0) output[line] = from_float(maximum + logf(sum));
    }
}

static void logsumexp(scalar_t* output, const scalar_t* x, AxisView view) {
    logsumexp_kernel<<<blocks_for(view.lines(), 1), THREADS>>>(output, x, view);
    check(cudaGetLastError());
}
