// Reductions over the threads of a warp and of a block, over rows, and over whole tensors; always in the same order.
#pragma once
#include <kernelblaster/kernels/launch.cuh>

struct Sum {
    static constexpr float NEUTRAL = 0.0f;
    __device__ float operator()(float a, float b) const { return a + b; }
};

struct Max {
    static constexpr float NEUTRAL = -INFINITY;
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

struct Min {
    static constexpr float NEUTRAL = INFINITY;
    __device__ float operator()(float a, float b) const { return fminf(a, b); }
};

template <typename Operation>
__device__ float warp_reduce(float value, Operation operation) {
    for (int offset = 16; offset > 0; offset /= 2) {
        value = operation(value, __shfl_xor_sync(0xffffffff, value, offset));
    }
    return value;
}

// Every thread of the block receives the result. The block consists of whole warps.
template <typename Operation>
__device__ float block_reduce(float value, Operation operation) {
    __shared__ float partial[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    value = warp_reduce(value, operation);
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    value = warp_reduce(lane < warps ? partial[lane] : Operation::NEUTRAL, operation);
    __syncthreads();
    return value;
}

// Sums the partial results that blocks have left, by one block, and hands the total to `store`.
template <typename Store>
__global__ void finish_sum_kernel(const float* partials, int count, Store store) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < count; i += blockDim.x) sum += partials[i];
    sum = block_reduce(sum, Sum());
    if (threadIdx.x == 0) store(sum);
}

template <typename Term>
__global__ void partial_sum_kernel(float* partials, int64_t count, Term term) {
    float sum = 0.0f;
    for (int64_t i = first_index(); i < count; i += index_step()) sum += term(i);
    sum = block_reduce(sum, Sum());
    if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

constexpr int PARTIALS = 1024;

// Sum of term(i) for i in [0, count), in two steps: each of up to PARTIALS blocks sums its share, then one block sums
// theirs and calls store(sum) in one thread. `partials` holds PARTIALS floats.
template <typename Term, typename Store>
static void sum_all(float* partials, int64_t count, Term term, Store store) {
    const unsigned wanted = blocks_for(count);
    const int blocks = wanted < PARTIALS ? static_cast<int>(wanted) : PARTIALS;
    partial_sum_kernel<<<blocks, THREADS>>>(partials, count, term);
    check(cudaGetLastError());
    finish_sum_kernel<<<1, THREADS>>>(partials, blocks, store);
    check(cudaGetLastError());
}

// Stores scale * sum as the one element of an output.
struct StoreScaled {
    scalar_t* output;
    float scale;
    __device__ void operator()(float sum) const { *output = from_float(scale * sum); }
};

// A tensor of any rank seen along one axis: outer x extent x inner elements.
struct AxisView {
    int64_t outer, extent, inner;
    // The first element of a line; the others follow `inner` apart.
    __device__ int64_t base(int64_t line) const { return line / inner * extent * inner + line % inner; }
    __host__ __device__ int64_t lines() const { return outer * inner; }
};

template <typename Operation, typename Finish>
__global__ void reduce_axis_kernel(
    scalar_t* output, const scalar_t* x, AxisView view, Operation operation, Finish finish) {
    for (int64_t line = first_index(); line < view.lines(); line += index_step()) {
        const scalar_t* first = x + view.base(line);
        float value = Operation::NEUTRAL;
        for (int64_t i = 0; i < view.extent; ++i) value = operation(value, to_float(first[i * view.inner]));
        output[line] = from_float(finish(value));
    }
}

// Reduces an axis, one thread per line: neighbouring threads read neighbouring elements where inner > 1.
template <typename Operation, typename Finish>
static void reduce_axis(scalar_t* output, const scalar_t* x, AxisView view, Operation operation, Finish finish) {
    reduce_axis_kernel<<<blocks_for(view.lines()), THREADS>>>(output, x, view, operation, finish);
    check(cudaGetLastError());
}

template <typename Operation, typename Finish>
__global__ void reduce_rows_kernel(
    scalar_t* output, const scalar_t* x, int64_t rows, int64_t width, Operation operation, Finish finish) {
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const scalar_t* first = x + row * width;
        float value = Operation::NEUTRAL;
        for (int64_t i = threadIdx.x; i < width; i += blockDim.x) value = operation(value, to_float(first[i]));
        value = block_reduce(value, operation);
        if (threadIdx.x == 0) output[row] = from_float(finish(value));
    }
}

// output[row] = finish(the reduction of row), one block per row: for long rows.
template <typename Operation, typename Finish>
static void reduce_rows(
    scalar_t* output, const scalar_t* x, int64_t rows, int64_t width, Operation operation, Finish finish) {
    reduce_rows_kernel<<<blocks_for(rows, 1), THREADS>>>(output, x, rows, width, operation, finish);
    check(cudaGetLastError());
}

// finish(value) = scale * value, for `reduce_axis` and `reduce_rows`.
struct Scaled {
    float scale;
    __device__ float operator()(float value) const { return scale * value; }
};
