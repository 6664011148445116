// Branches: uniform, by lane, by data, loops of uneven length, early exits, and work handed out at run time.
#include "conformance.hpp"

using conformance::blocks_for;

constexpr int kCount = 6'000'011;

__device__ float path(int kind, float value) {
    switch (kind) {
        case 0: for (int k = 0; k < 12; ++k) value = fmaf(value, 0.75f, 0.125f); return value;
        case 1: for (int k = 0; k < 12; ++k) value = fmaf(value, -0.5f, 0.25f); return value;
        case 2: for (int k = 0; k < 12; ++k) value = fmaf(value, value, -0.5f); return value;
        case 3: for (int k = 0; k < 12; ++k) value = fabsf(value - 0.375f); return value;
        case 4: for (int k = 0; k < 12; ++k) value = fmaxf(value * 0.875f, -value); return value;
        case 5: for (int k = 0; k < 12; ++k) value = fminf(value + 0.0625f, 0.5f) * 1.5f; return value;
        case 6: for (int k = 0; k < 12; ++k) value = (value + 0.5f) * (value - 0.5f); return value;
        default: for (int k = 0; k < 12; ++k) value = 1.0f - value * 0.625f; return value;
    }
}

__global__ void by_lane(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = path(i % 8, x[i]);
}

__global__ void by_warp(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = path(i / 32 % 8, x[i]);
}

__global__ void by_value(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float value = x[i];
    if (value > 0.0f) {
        for (int k = 0; k < 20; ++k) value = fmaf(value, 0.75f, 0.03125f);
    } else {
        for (int k = 0; k < 20; ++k) value = fmaf(value, -0.25f, 0.5f);
    }
    y[i] = value;
}

__global__ void without_branch(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float value = x[i];
    const bool positive = value > 0.0f;
    const float a = positive ? 0.75f : -0.25f, b = positive ? 0.03125f : 0.5f;
    for (int k = 0; k < 20; ++k) value = fmaf(value, a, b);
    y[i] = value;
}

__global__ void collatz(int* steps, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned value = i + 1;
    int count = 0;
    while (value != 1) {
        value = value % 2 == 0 ? value / 2 : 3 * value + 1;
        ++count;
    }
    steps[i] = count;
}

__global__ void mandelbrot(int* counts, int width, int height, int limit) {
    const int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    if (column >= width || row >= height) return;
    const float cr = -2.0f + 3.0f * column / width, ci = -1.25f + 2.5f * row / height;
    float zr = 0.0f, zi = 0.0f;
    int count = 0;
    while (count < limit && __fadd_rn(__fmul_rn(zr, zr), __fmul_rn(zi, zi)) < 4.0f) {
        const float next = __fadd_rn(__fsub_rn(__fmul_rn(zr, zr), __fmul_rn(zi, zi)), cr);
        zi = __fmaf_rn(2.0f * zr, zi, ci);
        zr = next;
        ++count;
    }
    counts[row * width + column] = count;
}

// One thread of eight works for long, the others leave.
__global__ void early_exit(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || i % 8 != 3) return;
    float value = x[i];
    for (int k = 0; k < 64; ++k) value = fmaf(value, 0.5f, 0.25f);
    y[i] = value;
}

// The same work on packed indices.
__global__ void packed_work(const float* x, float* y, int n) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 8 + 3;
    if (i >= n) return;
    float value = x[i];
    for (int k = 0; k < 64; ++k) value = fmaf(value, 0.5f, 0.25f);
    y[i] = value;
}

// Rows of very different lengths, a block each; or handed out by a counter to blocks that stay.
__global__ void uneven_rows(const float* x, float* y, int rows) {
    const int row = blockIdx.x, length = 32 + (row * 37 % 64) * (row % 16 == 0 ? 64 : 4);
    float sum = 0.0f;
    for (int k = threadIdx.x; k < length; k += blockDim.x) sum += x[k];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x == 0) y[row] = sum;
}

__global__ void queued_rows(const float* x, float* y, int* next, int rows) {
    while (true) {
        int row = 0;
        if (threadIdx.x == 0) row = atomicAdd(next, 1);
        row = __shfl_sync(0xffffffffu, row, 0);
        if (row >= rows) return;
        const int length = 32 + (row * 37 % 64) * (row % 16 == 0 ? 64 : 4);
        float sum = 0.0f;
        for (int k = threadIdx.x; k < length; k += 32) sum += x[k];
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
        if (threadIdx.x == 0) y[row] = sum;
    }
}

template <class Kernel>
void elementwise_case(conformance::Run& run, Kernel kernel) {
    const auto x = run.values<float>(kCount, 71);
    const auto y = run.empty<float>(kCount);
    run.before([=] { cudaMemsetAsync(y, 0, kCount * sizeof(float)); });
    run.call([=] { kernel<<<blocks_for(kCount, 256), 256>>>(x, y, kCount); });
    run.output("y", y, kCount);
}

CASE(switch_by_lane) { elementwise_case(run, by_lane); }
CASE(switch_by_warp) { elementwise_case(run, by_warp); }
CASE(branch_by_value) { elementwise_case(run, by_value); }
CASE(branch_avoided) { elementwise_case(run, without_branch); }
CASE(early_exit) { elementwise_case(run, early_exit); }
CASE(early_exit_packed) {
    const auto x = run.values<float>(kCount, 71);
    const auto y = run.empty<float>(kCount);
    run.before([=] { cudaMemsetAsync(y, 0, kCount * sizeof(float)); });
    run.call([=] { packed_work<<<blocks_for(kCount / 8 + 1, 256), 256>>>(x, y, kCount); });
    run.output("y", y, kCount);
}
CASE(collatz_lengths) {
    const int n = 400'009;
    const auto steps = run.empty<int>(n);
    run.call([=] { collatz<<<blocks_for(n, 128), 128>>>(steps, n); });
    run.output("steps", steps, n);
}
CASE(mandelbrot_counts) {
    const int width = 1533, height = 1051;
    const auto counts = run.empty<int>(width * height);
    run.call([=] {
        mandelbrot<<<dim3(blocks_for(width, 16), blocks_for(height, 16)), dim3(16, 16)>>>(counts, width, height, 128);
    });
    run.output("counts", counts, width * height);
}
CASE(uneven_rows_blocks) {
    const int rows = 60'013;
    const auto x = run.values<float>(8192, 72);
    const auto y = run.empty<float>(rows);
    run.call([=] { uneven_rows<<<rows, 32>>>(x, y, rows); });
    run.output("y", y, rows);
}
CASE(uneven_rows_queue) {
    const int rows = 60'013;
    const auto x = run.values<float>(8192, 72);
    const auto y = run.empty<float>(rows);
    const auto next = run.empty<int>(1);
    run.before([=] { cudaMemsetAsync(next, 0, sizeof(int)); });
    run.call([=] { queued_rows<<<132 * 16, 32>>>(x, y, next, rows); });
    run.output("y", y, rows);
}

CONFORMANCE_MAIN
