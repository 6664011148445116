// Softmax and its kin along any axis: three passes over a line (maximum, sum, write), by a block or by one thread.
#pragma once
#include <kernelblaster/kernels/epilogue.cuh>
#include <kernelblaster/kernels/reduce.cuh>

// A line's maximum, and the sum of exp(x - maximum) over its elements.
struct ExpSum {
    float maximum, sum;
};

// Of element(0..count), by one block; every thread receives both.
template <typename Element>
__device__ ExpSum block_exp_sum(int64_t count, Element element) {
    float maximum = -INFINITY, sum = 0.0f;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) maximum = fmaxf(maximum, element(i));
    maximum = block_reduce(maximum, Max());
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += expf(element(i) - maximum);
    return {maximum, block_reduce(sum, Sum())};
}

// Of element(0..count), by one thread.
template <typename Element>
__device__ ExpSum thread_exp_sum(int64_t count, Element element) {
    float maximum = -INFINITY, sum = 0.0f;
    for (int64_t i = 0; i < count; ++i) maximum = fmaxf(maximum, element(i));
    for (int64_t i = 0; i < count; ++i) sum += expf(element(i) - maximum);
    return {maximum, sum};
}

struct SoftmaxValue {
    __device__ float operator()(float shifted, float sum) const { return expf(shifted) / sum; }
};

struct LogSoftmaxValue {
    __device__ float operator()(float shifted, float sum) const { return shifted - logf(sum); }
};

// epilogue(value(x - maximum, sum of exp(x - maximum)), index, line) of each element of a line.
template <typename Value, typename Epilogue>
__global__ void softmax_kernel(scalar_t* output, const scalar_t* x, AxisView view, Value value, Epilogue epilogue) {
    for (int64_t line = blockIdx.x; line < view.lines(); line += gridDim.x) {
        const int64_t base = view.base(line);
        const ExpSum of_line =
            block_exp_sum(view.extent, [&](int64_t i) { return to_float(x[base + i * view.inner]); });
        for (int64_t i = threadIdx.x; i < view.extent; i += blockDim.x) {
            const int64_t at = base + i * view.inner;
            output[at] = from_float(epilogue(value(to_float(x[at]) - of_line.maximum, of_line.sum), at, line));
        }
    }
}

// Softmax along an axis, or log-softmax with LogSoftmaxValue(). An epilogue gets the line's number in place of a
// channel. `output` may be `x`.
template <typename Value = SoftmaxValue, typename Epilogue = Plain>
static void softmax(scalar_t* output, const scalar_t* x, AxisView view, Value value = Value(),
                    Epilogue epilogue = Epilogue()) {
    softmax_kernel<<<blocks_for(view.lines(), 1), THREADS>>>(output, x, view, value, epilogue);
    check(cudaGetLastError());
}

// output[line] = log(sum(exp(x))) along an axis, one block per line.
__global__ void logsumexp_kernel(scalar_t* output, const scalar_t* x, AxisView view) {
    for (int64_t line = blockIdx.x; line < view.lines(); line += gridDim.x) {
        const int64_t base = view.base(line);
        const ExpSum of_line =
            block_exp_sum(view.extent, [&](int64_t i) { return to_float(x[base + i * view.inner]); });
        if (threadIdx.x == 0) output[line] = from_float(of_line.maximum + logf(of_line.sum));
    }
}

static void logsumexp(scalar_t* output, const scalar_t* x, AxisView view) {
    logsumexp_kernel<<<blocks_for(view.lines(), 1), THREADS>>>(output, x, view);
    check(cudaGetLastError());
}

template <typename Epilogue>
__global__ void softmax_channels_kernel(scalar_t* output, const scalar_t* x, AxisView view, Epilogue epilogue) {
    for (int64_t line = first_index(); line < view.lines(); line += index_step()) {
        const int64_t base = view.base(line);
        const ExpSum of_line =
            thread_exp_sum(view.extent, [&](int64_t i) { return to_float(x[base + i * view.inner]); });
        for (int64_t i = 0; i < view.extent; ++i) {
            const int64_t at = base + i * view.inner;
            output[at] = from_float(epilogue(expf(to_float(x[at]) - of_line.maximum) / of_line.sum, at, i));
        }
    }
}

// Softmax along an axis of few elements, such as channels, one thread per line. `output` may be `x`.
template <typename Epilogue = Plain>
static void softmax_channels(scalar_t* output, const scalar_t* x, AxisView view, Epilogue epilogue = Epilogue()) {
    softmax_channels_kernel<<<blocks_for(view.lines()), THREADS>>>(output, x, view, epilogue);
    check(cudaGetLastError());
}

template <typename Finish>
__global__ void logsumexp_channels_kernel(scalar_t* output, const scalar_t* x, AxisView view, Finish finish) {
    for (int64_t line = first_index(); line < view.lines(); line += index_step()) {
        const int64_t base = view.base(line);
        const ExpSum of_line =
            thread_exp_sum(view.extent, [&](int64_t i) { return to_float(x[base + i * view.inner]); });
        output[line] = from_float(finish(of_line.maximum + logf(of_line.sum)));
    }
}

// output[line] = finish(log(sum(exp(x)))) along an axis of few elements, one thread per line.
template <typename Finish>
static void logsumexp_channels(scalar_t* output, const scalar_t* x, AxisView view, Finish finish) {
    logsumexp_channels_kernel<<<blocks_for(view.lines()), THREADS>>>(output, x, view, finish);
    check(cudaGetLastError());
}
