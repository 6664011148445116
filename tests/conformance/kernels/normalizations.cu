// Softmax and the normalisations: rows per thread, warp and block, one pass and several, scalar and vector loads.
// Exponentials and reciprocal square roots are approximations: outputs state their ulps.
#include "conformance.hpp"

using conformance::blocks_for;

constexpr int kRows = 4099, kColumns = 2044;
constexpr double kApproximate = 32;

__device__ float warp_sum(float value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}
__device__ float warp_max(float value) {
    for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
}
__device__ float block_sum(float value) {
    __shared__ float warps[32];
    value = warp_sum(value);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = warp_sum(threadIdx.x % 32 < blockDim.x / 32 ? warps[threadIdx.x % 32] : 0.0f);
    __syncthreads();
    return value;
}
__device__ float block_max(float value) {
    __shared__ float warps[32];
    value = warp_max(value);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = warp_max(threadIdx.x % 32 < blockDim.x / 32 ? warps[threadIdx.x % 32] : -INFINITY);
    __syncthreads();
    return value;
}

__global__ void softmax_thread(const float* x, float* y, int rows, int columns) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float* in = x + row * columns;
    float largest = -INFINITY, sum = 0.0f;
    for (int k = 0; k < columns; ++k) largest = fmaxf(largest, in[k]);
    for (int k = 0; k < columns; ++k) sum += expf(in[k] - largest);
    for (int k = 0; k < columns; ++k) y[row * columns + k] = expf(in[k] - largest) / sum;
}

__global__ void softmax_block(const float* x, float* y, int columns) {
    const float* in = x + blockIdx.x * columns;
    float largest = -INFINITY, sum = 0.0f;
    for (int k = threadIdx.x; k < columns; k += blockDim.x) largest = fmaxf(largest, in[k]);
    largest = block_max(largest);
    for (int k = threadIdx.x; k < columns; k += blockDim.x) sum += expf(in[k] - largest);
    sum = block_sum(sum);
    for (int k = threadIdx.x; k < columns; k += blockDim.x) y[blockIdx.x * columns + k] = expf(in[k] - largest) / sum;
}

// Maximum and sum in one pass over the row.
__global__ void softmax_online(const float* x, float* y, int columns) {
    const float* in = x + blockIdx.x * columns;
    float largest = -INFINITY, sum = 0.0f;
    for (int k = threadIdx.x; k < columns; k += blockDim.x) {
        const float value = in[k], before = largest;
        largest = fmaxf(largest, value);
        sum = sum * __expf(before - largest) + __expf(value - largest);
    }
    const float whole = block_max(largest);
    sum = block_sum(sum * __expf(largest - whole));
    const float scale = 1.0f / sum;
    for (int k = threadIdx.x; k < columns; k += blockDim.x) y[blockIdx.x * columns + k] = __expf(in[k] - whole) * scale;
}

// A row stays in the registers of one warp.
__global__ void softmax_warp(const float4* x, float4* y, int rows, int columns4) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float4 part[16];
    float largest = -INFINITY, sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        const int at = lane + 32 * k;
        part[k] = at < columns4 ? x[row * columns4 + at] : make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
        largest = fmaxf(largest, fmaxf(fmaxf(part[k].x, part[k].y), fmaxf(part[k].z, part[k].w)));
    }
    largest = warp_max(largest);
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        part[k] = make_float4(__expf(part[k].x - largest), __expf(part[k].y - largest), __expf(part[k].z - largest),
                              __expf(part[k].w - largest));
        sum += (part[k].x + part[k].y) + (part[k].z + part[k].w);
    }
    const float scale = __fdividef(1.0f, warp_sum(sum));
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        const int at = lane + 32 * k;
        if (at < columns4)
            y[row * columns4 + at] =
                make_float4(part[k].x * scale, part[k].y * scale, part[k].z * scale, part[k].w * scale);
    }
}

__global__ void softmax_half2(const __half2* x, __half2* y, int pairs) {
    const __half2* in = x + blockIdx.x * pairs;
    float largest = -INFINITY, sum = 0.0f;
    for (int k = threadIdx.x; k < pairs; k += blockDim.x) {
        const float2 value = __half22float2(in[k]);
        largest = fmaxf(largest, fmaxf(value.x, value.y));
    }
    largest = block_max(largest);
    for (int k = threadIdx.x; k < pairs; k += blockDim.x) {
        const float2 value = __half22float2(in[k]);
        sum += __expf(value.x - largest) + __expf(value.y - largest);
    }
    const float scale = 1.0f / block_sum(sum);
    for (int k = threadIdx.x; k < pairs; k += blockDim.x) {
        const float2 value = __half22float2(in[k]);
        y[blockIdx.x * pairs + k] =
            __floats2half2_rn(__expf(value.x - largest) * scale, __expf(value.y - largest) * scale);
    }
}

__global__ void layernorm_thread(const float* x, float* y, int rows, int columns) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float* in = x + row * columns;
    float mean = 0.0f, variance = 0.0f;
    for (int k = 0; k < columns; ++k) mean += in[k];
    mean /= columns;
    for (int k = 0; k < columns; ++k) variance += (in[k] - mean) * (in[k] - mean);
    const float scale = rsqrtf(variance / columns + 1e-5f);
    for (int k = 0; k < columns; ++k) y[row * columns + k] = (in[k] - mean) * scale;
}

__global__ void layernorm_block(const float* x, const float* gain, const float* shift, float* y, int columns) {
    const float* in = x + blockIdx.x * columns;
    float sum = 0.0f, squares = 0.0f;
    for (int k = threadIdx.x; k < columns; k += blockDim.x) sum += in[k];
    const float mean = block_sum(sum) / columns;
    for (int k = threadIdx.x; k < columns; k += blockDim.x) squares += (in[k] - mean) * (in[k] - mean);
    const float scale = rsqrtf(block_sum(squares) / columns + 1e-5f);
    for (int k = threadIdx.x; k < columns; k += blockDim.x)
        y[blockIdx.x * columns + k] = (in[k] - mean) * scale * gain[k] + shift[k];
}

__global__ void layernorm_vector(const float4* x, const float4* gain, const float4* shift, float4* y, int columns4) {
    __shared__ float4 row[512];
    const float4* in = x + blockIdx.x * columns4;
    float sum = 0.0f, squares = 0.0f;
    for (int k = threadIdx.x; k < columns4; k += blockDim.x) {
        const float4 v = in[k];
        row[k] = v;
        sum += (v.x + v.y) + (v.z + v.w);
        squares += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
    }
    const float count = 4.0f * columns4, mean = block_sum(sum) / count;
    const float scale = rsqrtf(block_sum(squares) / count - mean * mean + 1e-5f);
    for (int k = threadIdx.x; k < columns4; k += blockDim.x) {
        const float4 v = row[k], g = gain[k], s = shift[k];
        y[blockIdx.x * columns4 + k] =
            make_float4((v.x - mean) * scale * g.x + s.x, (v.y - mean) * scale * g.y + s.y,
                        (v.z - mean) * scale * g.z + s.z, (v.w - mean) * scale * g.w + s.w);
    }
}

// One thread for each position; the normalised axis is the outer one of (batch, features, positions).
__global__ void rmsnorm_features(const float* x, float* y, int features, int positions) {
    const int position = blockIdx.x * blockDim.x + threadIdx.x;
    if (position >= positions) return;
    const size_t base = static_cast<size_t>(blockIdx.y) * features * positions + position;
    float squares = 0.0f;
    for (int f = 0; f < features; ++f) squares += x[base + static_cast<size_t>(f) * positions] * x[base + static_cast<size_t>(f) * positions];
    const float norm = sqrtf(squares / features + 1e-5f);
    for (int f = 0; f < features; ++f) y[base + static_cast<size_t>(f) * positions] = x[base + static_cast<size_t>(f) * positions] / norm;
}

__global__ void rmsnorm_rows(const uint4* x, uint4* y, int columns8) {
    const int row = blockIdx.x;
    uint4 own[2];
    float squares = 0.0f;
    for (int k = 0; k < 2; ++k) {
        const int at = threadIdx.x + k * blockDim.x;
        if (at >= columns8) continue;
        own[k] = x[row * columns8 + at];
        const __half2* pairs = reinterpret_cast<const __half2*>(own + k);
        for (int p = 0; p < 4; ++p) {
            const float2 v = __half22float2(pairs[p]);
            squares += v.x * v.x + v.y * v.y;
        }
    }
    const float scale = rsqrtf(block_sum(squares) / (8.0f * columns8) + 1e-5f);
    for (int k = 0; k < 2; ++k) {
        const int at = threadIdx.x + k * blockDim.x;
        if (at >= columns8) continue;
        __half2* pairs = reinterpret_cast<__half2*>(own + k);
        for (int p = 0; p < 4; ++p) {
            const float2 v = __half22float2(pairs[p]);
            pairs[p] = __floats2half2_rn(v.x * scale, v.y * scale);
        }
        y[row * columns8 + at] = own[k];
    }
}

__global__ void groupnorm(const float* x, const float* gain, float* y, int channels, int positions) {
    const int n = channels * positions;
    const float* in = x + static_cast<size_t>(blockIdx.x) * n;
    float sum = 0.0f, squares = 0.0f;
    for (int k = threadIdx.x; k < n; k += blockDim.x) sum += in[k], squares += in[k] * in[k];
    const float mean = block_sum(sum) / n;
    const float scale = rsqrtf(block_sum(squares) / n - mean * mean + 1e-5f);
    for (int k = threadIdx.x; k < n; k += blockDim.x)
        y[static_cast<size_t>(blockIdx.x) * n + k] = (in[k] - mean) * scale * gain[k / positions];
}

__global__ void cross_entropy(const float* x, const int* targets, float* losses, int columns) {
    const float* in = x + blockIdx.x * columns;
    float largest = -INFINITY, sum = 0.0f;
    for (int k = threadIdx.x; k < columns; k += blockDim.x) largest = fmaxf(largest, in[k]);
    largest = block_max(largest);
    for (int k = threadIdx.x; k < columns; k += blockDim.x) sum += expf(in[k] - largest);
    sum = block_sum(sum);
    if (threadIdx.x == 0) losses[blockIdx.x] = logf(sum) + largest - in[targets[blockIdx.x]];
}

template <class Launch>
void rows_case(conformance::Run& run, Launch launch) {
    const auto x = run.values<float>(kRows * kColumns, 17);
    const auto y = run.empty<float>(kRows * kColumns);
    run.call([=] { launch(x, y); });
    run.output("y", y, kRows * kColumns, kApproximate);
}

CASE(softmax_row_thread) {
    rows_case(run, [](const float* x, float* y) {
        softmax_thread<<<blocks_for(kRows, 64), 64>>>(x, y, kRows, kColumns);
    });
}
CASE(softmax_row_block) {
    rows_case(run, [](const float* x, float* y) { softmax_block<<<kRows, 256>>>(x, y, kColumns); });
}
CASE(softmax_online) {
    rows_case(run, [](const float* x, float* y) { softmax_online<<<kRows, 256>>>(x, y, kColumns); });
}
CASE(softmax_warp_registers) {
    rows_case(run, [](const float* x, float* y) {
        softmax_warp<<<blocks_for(kRows, 4), 128>>>((const float4*)x, (float4*)y, kRows, kColumns / 4);
    });
}
CASE(softmax_half2) {
    const auto x = run.values<__half>(kRows * kColumns, 17);
    const auto y = run.empty<__half>(kRows * kColumns);
    run.call([=] { softmax_half2<<<kRows, 256>>>((const __half2*)x, (__half2*)y, kColumns / 2); });
    run.output("y", y, kRows * kColumns, 1);
}
CASE(layernorm_row_thread) {
    rows_case(run, [](const float* x, float* y) {
        layernorm_thread<<<blocks_for(kRows, 64), 64>>>(x, y, kRows, kColumns);
    });
}
CASE(layernorm_row_block) {
    const auto gain = run.values<float>(kColumns, 18), shift = run.values<float>(kColumns, 19);
    rows_case(run, [=](const float* x, float* y) { layernorm_block<<<kRows, 256>>>(x, gain, shift, y, kColumns); });
}
CASE(layernorm_float4) {
    const auto gain = run.values<float>(kColumns, 18), shift = run.values<float>(kColumns, 19);
    rows_case(run, [=](const float* x, float* y) {
        layernorm_vector<<<kRows, 256>>>((const float4*)x, (const float4*)gain, (const float4*)shift, (float4*)y,
                                         kColumns / 4);
    });
}
CASE(rmsnorm_feature_axis) {
    const int batch = 17, features = 61, positions = 10003;
    const auto x = run.values<float>(batch * features * positions, 17);
    const auto y = run.empty<float>(batch * features * positions);
    run.call([=] { rmsnorm_features<<<dim3(blocks_for(positions, 256), batch), 256>>>(x, y, features, positions); });
    run.output("y", y, batch * features * positions, kApproximate);
}
CASE(rmsnorm_half8) {
    const int rows = 5003, columns = 3000;
    const auto x = run.values<__half>(rows * columns, 17);
    const auto y = run.empty<__half>(rows * columns);
    run.call([=] { rmsnorm_rows<<<rows, 256>>>((const uint4*)x, (uint4*)y, columns / 8); });
    run.output("y", y, rows * columns, 1);
}
CASE(groupnorm_block) {
    const int groups = 701, channels = 7, positions = 1501;
    const auto x = run.values<float>(groups * channels * positions, 17);
    const auto gain = run.values<float>(channels, 18);
    const auto y = run.empty<float>(groups * channels * positions);
    run.call([=] { groupnorm<<<groups, 512>>>(x, gain, y, channels, positions); });
    run.output("y", y, groups * channels * positions, kApproximate);
}
CASE(cross_entropy_block) {
    const auto x = run.values<float>(kRows * kColumns, 17);
    const auto targets = run.integers<int>(kRows, 21, kColumns);
    const auto losses = run.empty<float>(kRows);
    run.call([=] { cross_entropy<<<kRows, 256>>>(x, targets, losses, kColumns); });
    run.output("losses", losses, kRows, kApproximate);
}

CONFORMANCE_MAIN
