// Work along rows and columns: norms, softmax over short and long rows, losses, arguments of maxima, running sums.
// Exponentials, logarithms and reciprocal square roots are approximations: outputs state their ulps.
#include "conformance.hpp"

using conformance::blocks_for;

constexpr double kApproximate = 256;

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

// RMS norm: a tree in shared memory, a warp per row, a block with wide words.
__global__ void rms_tree(const float* x, const float* gain, float* y, int columns) {
    __shared__ float sums[256];
    const float* in = x + static_cast<size_t>(blockIdx.x) * columns;
    float sum = 0.0f;
    for (int k = threadIdx.x; k < columns; k += 256) sum += in[k] * in[k];
    sums[threadIdx.x] = sum;
    for (int step = 128; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
    }
    __syncthreads();
    const float scale = rsqrtf(sums[0] / columns + 1e-5f);
    for (int k = threadIdx.x; k < columns; k += 256) y[static_cast<size_t>(blockIdx.x) * columns + k] = in[k] * scale * gain[k];
}
__global__ void rms_warp(const float4* x, const float4* gain, float4* y, int rows, int columns4) {
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    const float4* in = x + static_cast<size_t>(row) * columns4;
    float sum = 0.0f;
    for (int k = lane; k < columns4; k += 32) {
        const float4 v = in[k];
        sum += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
    }
    const float scale = rsqrtf(warp_sum(sum) / (4.0f * columns4) + 1e-5f);
    for (int k = lane; k < columns4; k += 32) {
        const float4 v = in[k], g = gain[k];
        y[static_cast<size_t>(row) * columns4 + k] =
            make_float4(v.x * scale * g.x, v.y * scale * g.y, v.z * scale * g.z, v.w * scale * g.w);
    }
}

void rms_case(conformance::Run& run, int rows, int columns, bool by_warp) {
    const int n = rows * columns;
    const auto x = run.values<float>(n, 51), gain = run.values<float>(columns, 52), y = run.empty<float>(n);
    if (by_warp)
        run.call([=] {
            rms_warp<<<blocks_for(rows, 8), 256>>>((const float4*)x, (const float4*)gain, (float4*)y, rows, columns / 4);
        });
    else run.call([=] { rms_tree<<<rows, 256>>>(x, gain, y, columns); });
    run.output("y", y, n, kApproximate);
}

CASE(rms_tree_short_rows) { rms_case(run, 20'000, 256, false); }
CASE(rms_warp_short_rows) { rms_case(run, 20'000, 256, true); }
CASE(rms_tree_long_rows) { rms_case(run, 700, 8192, false); }
CASE(rms_warp_long_rows) { rms_case(run, 700, 8192, true); }

// Layer norm in half precision: scalar with two passes over memory, and packed with the row in registers.
__global__ void layernorm_half(const __half* x, __half* y, int columns) {
    const __half* in = x + static_cast<size_t>(blockIdx.x) * columns;
    float sum = 0.0f, squares = 0.0f;
    for (int k = threadIdx.x; k < columns; k += blockDim.x) sum += __half2float(in[k]);
    const float mean = block_sum(sum) / columns;
    for (int k = threadIdx.x; k < columns; k += blockDim.x) {
        const float v = __half2float(in[k]) - mean;
        squares += v * v;
    }
    const float scale = rsqrtf(block_sum(squares) / columns + 1e-5f);
    for (int k = threadIdx.x; k < columns; k += blockDim.x)
        y[static_cast<size_t>(blockIdx.x) * columns + k] = __float2half((__half2float(in[k]) - mean) * scale);
}
__global__ void layernorm_half8_warp(const uint4* x, uint4* y, int rows) {
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    uint4 own[4];
    float sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int k = 0; k < 4; ++k) own[k] = x[row * 128 + k * 32 + lane];
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        const float2 v = __half22float2(reinterpret_cast<__half2*>(own)[k]);
        sum += v.x + v.y, squares += v.x * v.x + v.y * v.y;
    }
    const float mean = warp_sum(sum) / 1024.0f, scale = rsqrtf(warp_sum(squares) / 1024.0f - mean * mean + 1e-5f);
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        __half2& pair = reinterpret_cast<__half2*>(own)[k];
        const float2 v = __half22float2(pair);
        pair = __floats2half2_rn((v.x - mean) * scale, (v.y - mean) * scale);
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) y[row * 128 + k * 32 + lane] = own[k];
}

CASE(layernorm_half_scalar) {
    const int rows = 6001, columns = 1024;
    const auto x = run.values<__half>(rows * columns, 53), y = run.empty<__half>(rows * columns);
    run.call([=] { layernorm_half<<<rows, 128>>>(x, y, columns); });
    run.output("y", y, rows * columns, 2);
}
CASE(layernorm_half8_registers) {
    const int rows = 6001, columns = 1024;
    const auto x = run.values<__half>(rows * columns, 53), y = run.empty<__half>(rows * columns);
    run.call([=] { layernorm_half8_warp<<<blocks_for(rows, 4), 128>>>((const uint4*)x, (uint4*)y, rows); });
    run.output("y", y, rows * columns, 2);
}

// Softmax over 128 columns: a block per row with barriers, or a warp.
__global__ void softmax_short_block(const float* x, float* y) {
    __shared__ float words[128];
    const int t = threadIdx.x;
    const float value = x[blockIdx.x * 128 + t];
    words[t] = value;
    for (int step = 64; step > 0; step /= 2) {
        __syncthreads();
        if (t < step) words[t] = fmaxf(words[t], words[t + step]);
    }
    __syncthreads();
    const float weight = expf(value - words[0]);
    __syncthreads();
    words[t] = weight;
    for (int step = 64; step > 0; step /= 2) {
        __syncthreads();
        if (t < step) words[t] += words[t + step];
    }
    __syncthreads();
    y[blockIdx.x * 128 + t] = weight / words[0];
}
__global__ void softmax_short_warp(const float4* x, float4* y, int rows) {
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float4 v = x[row * 32 + lane];
    const float most = warp_max(fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    v = make_float4(__expf(v.x - most), __expf(v.y - most), __expf(v.z - most), __expf(v.w - most));
    const float scale = 1.0f / warp_sum((v.x + v.y) + (v.z + v.w));
    y[row * 32 + lane] = make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale);
}

CASE(softmax_128_block) {
    const int rows = 30'011;
    const auto x = run.values<float>(rows * 128, 54), y = run.empty<float>(rows * 128);
    run.call([=] { softmax_short_block<<<rows, 128>>>(x, y); });
    run.output("y", y, rows * 128, kApproximate);
}
CASE(softmax_128_warp) {
    const int rows = 30'011;
    const auto x = run.values<float>(rows * 128, 54), y = run.empty<float>(rows * 128);
    run.call([=] { softmax_short_warp<<<blocks_for(rows, 8), 256>>>((const float4*)x, (float4*)y, rows); });
    run.output("y", y, rows * 128, kApproximate);
}

// Log of the softmax over very long rows: three passes over memory, or one that keeps the row in shared memory.
__global__ void log_softmax_passes(const float* x, float* y, int columns) {
    const float* in = x + static_cast<size_t>(blockIdx.x) * columns;
    __shared__ float warps[32];
    float most = -INFINITY, sum = 0.0f;
    for (int k = threadIdx.x; k < columns; k += blockDim.x) most = fmaxf(most, in[k]);
    most = warp_max(most);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = most;
    __syncthreads();
    most = warp_max(threadIdx.x % 32 < blockDim.x / 32 ? warps[threadIdx.x % 32] : -INFINITY);
    for (int k = threadIdx.x; k < columns; k += blockDim.x) sum += expf(in[k] - most);
    const float shift = most + logf(block_sum(sum));
    for (int k = threadIdx.x; k < columns; k += blockDim.x) y[static_cast<size_t>(blockIdx.x) * columns + k] = in[k] - shift;
}
__global__ void log_softmax_kept(const float4* x, float4* y, int columns4) {
    extern __shared__ float4 row[];
    const float4* in = x + static_cast<size_t>(blockIdx.x) * columns4;
    float sum = 0.0f;
    for (int k = threadIdx.x; k < columns4; k += blockDim.x) {
        const float4 v = in[k];
        row[k] = v;
        sum += (__expf(v.x) + __expf(v.y)) + (__expf(v.z) + __expf(v.w));
    }
    const float shift = __logf(block_sum(sum));
    for (int k = threadIdx.x; k < columns4; k += blockDim.x) {
        const float4 v = row[k];
        y[static_cast<size_t>(blockIdx.x) * columns4 + k] = make_float4(v.x - shift, v.y - shift, v.z - shift, v.w - shift);
    }
}

CASE(log_softmax_three_passes) {
    const int rows = 300, columns = 20'000;
    const auto x = run.values<float>(rows * columns, 55), y = run.empty<float>(rows * columns);
    run.call([=] { log_softmax_passes<<<rows, 512>>>(x, y, columns); });
    run.output("y", y, rows * columns, kApproximate);
}
CASE(log_softmax_kept_row) {
    const int rows = 300, columns = 20'000;
    const auto x = run.values<float>(rows * columns, 55), y = run.empty<float>(rows * columns);
    conformance::check(cudaFuncSetAttribute(log_softmax_kept, cudaFuncAttributeMaxDynamicSharedMemorySize, 80'000),
                       "asking for 80 KB of shared memory");
    run.call([=] { log_softmax_kept<<<rows, 512, 80'000>>>((const float4*)x, (float4*)y, columns / 4); });
    run.output("y", y, rows * columns, kApproximate);
}

// Batch norm of (batch, channels, positions): statistics and application in two launches.
__global__ void channel_statistics(const float* x, float2* found, int batch, int channels, int positions) {
    float sum = 0.0f, squares = 0.0f;
    for (int b = 0; b < batch; ++b) {
        const float* in = x + (static_cast<size_t>(b) * channels + blockIdx.x) * positions;
        for (int k = threadIdx.x; k < positions; k += blockDim.x) sum += in[k], squares += in[k] * in[k];
    }
    sum = block_sum(sum), squares = block_sum(squares);
    const float n = static_cast<float>(batch) * positions, mean = sum / n;
    if (threadIdx.x == 0) found[blockIdx.x] = make_float2(mean, rsqrtf(squares / n - mean * mean + 1e-5f));
}
__global__ void normalize_channels(const float* x, const float2* found, float* y, int channels, int positions, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float2 one = found[i / positions % channels];
    y[i] = (x[i] - one.x) * one.y;
}

// Instance norm: a block for each channel of each sample.
__global__ void normalize_instance(const float* x, float* y, int positions) {
    const size_t base = static_cast<size_t>(blockIdx.x) * positions;
    float sum = 0.0f, squares = 0.0f;
    for (int k = threadIdx.x; k < positions; k += 256) sum += x[base + k];
    const float mean = block_sum(sum) / positions;
    for (int k = threadIdx.x; k < positions; k += 256) squares += (x[base + k] - mean) * (x[base + k] - mean);
    const float scale = rsqrtf(block_sum(squares) / positions + 1e-5f);
    for (int k = threadIdx.x; k < positions; k += 256) y[base + k] = (x[base + k] - mean) * scale;
}

CASE(batchnorm_two_kernels) {
    const int batch = 16, channels = 96, positions = 56 * 56, n = batch * channels * positions;
    const auto x = run.values<float>(n, 56), y = run.empty<float>(n), found = run.empty<float>(2 * channels);
    run.call([=] {
        channel_statistics<<<channels, 512>>>(x, (float2*)found, batch, channels, positions);
        normalize_channels<<<blocks_for(n, 256), 256>>>(x, (const float2*)found, y, channels, positions, n);
    });
    run.output("y", y, n, kApproximate);
}
CASE(instancenorm_block) {
    const int batch = 16, channels = 96, positions = 56 * 56, n = batch * channels * positions;
    const auto x = run.values<float>(n, 56), y = run.empty<float>(n);
    run.call([=] { normalize_instance<<<batch * channels, 256>>>(x, y, positions); });
    run.output("y", y, n, kApproximate);
}

// Sums over the middle axis of (outer, middle, inner).
__global__ void middle_sum(const float* x, float* y, int middle, int inner) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= inner) return;
    const float* in = x + static_cast<size_t>(blockIdx.y) * middle * inner + i;
    float sum = 0.0f;
    for (int k = 0; k < middle; ++k) sum += in[static_cast<size_t>(k) * inner];
    y[blockIdx.y * inner + i] = sum;
}
// Eight warps share the middle axis, with wide words.
__global__ void middle_sum_shared(const float4* x, float4* y, int middle, int inner4) {
    __shared__ float4 parts[8][32];
    const int lane = threadIdx.x, part = threadIdx.y, i = blockIdx.x * 32 + lane;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (i < inner4)
        for (int k = part; k < middle; k += 8) {
            const float4 v = x[(static_cast<size_t>(blockIdx.y) * middle + k) * inner4 + i];
            sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
        }
    parts[part][lane] = sum;
    __syncthreads();
    if (part == 0 && i < inner4) {
        for (int p = 1; p < 8; ++p) {
            const float4 v = parts[p][lane];
            sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
        }
        y[blockIdx.y * inner4 + i] = sum;
    }
}

CASE(middle_axis_thread) {
    const int outer = 16, middle = 512, inner = 768;
    const auto x = run.values<float>(outer * middle * inner, 57), y = run.empty<float>(outer * inner);
    run.call([=] { middle_sum<<<dim3(blocks_for(inner, 256), outer), 256>>>(x, y, middle, inner); });
    run.output("y", y, outer * inner);
}
CASE(middle_axis_shared) {
    const int outer = 16, middle = 512, inner = 768;
    const auto x = run.values<float>(outer * middle * inner, 57), y = run.empty<float>(outer * inner);
    run.call([=] {
        middle_sum_shared<<<dim3(blocks_for(inner / 4, 32), outer), dim3(32, 8)>>>((const float4*)x, (float4*)y, middle, inner / 4);
    });
    run.output("y", y, outer * inner);
}

// Argument of the smallest value of each row, a thread or a warp per row.
__global__ void argmin_thread(const float* x, int* y, int rows, int columns) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float least = INFINITY;
    int place = 0;
    for (int k = 0; k < columns; ++k) {
        const float v = x[static_cast<size_t>(row) * columns + k];
        if (v < least) least = v, place = k;
    }
    y[row] = place;
}
__global__ void argmin_warp(const float* x, int* y, int rows, int columns) {
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float least = INFINITY;
    int place = 0;
    for (int k = lane; k < columns; k += 32) {
        const float v = x[static_cast<size_t>(row) * columns + k];
        if (v < least) least = v, place = k;
    }
    for (int step = 16; step > 0; step /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, least, step);
        const int at = __shfl_xor_sync(0xffffffffu, place, step);
        if (other < least || (other == least && at < place)) least = other, place = at;
    }
    if (lane == 0) y[row] = place;
}

CASE(argmin_rows_thread) {
    const int rows = 4001, columns = 1000;
    const auto x = run.values<float>(rows * columns, 58);
    const auto y = run.empty<int>(rows);
    run.call([=] { argmin_thread<<<blocks_for(rows, 128), 128>>>(x, y, rows, columns); });
    run.output("y", y, rows);
}
CASE(argmin_rows_warp) {
    const int rows = 4001, columns = 1000;
    const auto x = run.values<float>(rows * columns, 58);
    const auto y = run.empty<int>(rows);
    run.call([=] { argmin_warp<<<blocks_for(rows, 8), 256>>>(x, y, rows, columns); });
    run.output("y", y, rows);
}

// Running sums down the columns: a thread per column, or tiles that lanes scan with shuffles.
__global__ void running_columns(const float* x, float* y, int rows, int columns) {
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= columns) return;
    float sum = 0.0f;
    for (int r = 0; r < rows; ++r) {
        sum += x[static_cast<size_t>(r) * columns + c];
        y[static_cast<size_t>(r) * columns + c] = sum;
    }
}
__global__ void running_rows(const float* x, float* y, int rows, int columns) {
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float before = 0.0f;
    for (int begin = 0; begin < columns; begin += 32) {
        const int k = begin + lane;
        float v = k < columns ? x[static_cast<size_t>(row) * columns + k] : 0.0f;
        for (int step = 1; step < 32; step *= 2) {
            const float left = __shfl_up_sync(0xffffffffu, v, step);
            if (lane >= step) v += left;
        }
        v += before;
        if (k < columns) y[static_cast<size_t>(row) * columns + k] = v;
        before = __shfl_sync(0xffffffffu, v, 31);
    }
}

CASE(running_sum_columns) {
    const int rows = 400, columns = 8000;
    const auto x = run.values<float>(rows * columns, 59), y = run.empty<float>(rows * columns);
    run.call([=] { running_columns<<<blocks_for(columns, 128), 128>>>(x, y, rows, columns); });
    run.output("y", y, rows * columns);
}
CASE(running_sum_rows_warp) {
    const int rows = 8000, columns = 400;
    const auto x = run.values<float>(rows * columns, 59), y = run.empty<float>(rows * columns);
    run.call([=] { running_rows<<<blocks_for(rows, 4), 128>>>(x, y, rows, columns); });
    run.output("y", y, rows * columns);
}

// Losses: Huber's over all elements, with an atomic per block; the cosine of two rows; KL divergence of rows.
__global__ void huber(const float* x, const float* t, float* loss, int n) {
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const float d = fabsf(x[i] - t[i]);
        sum += d < 0.5f ? 0.5f * d * d : 0.5f * (d - 0.25f);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) atomicAdd(loss, sum);
}
__global__ void cosines(const float* a, const float* b, float* y, int columns) {
    float ab = 0.0f, aa = 0.0f, bb = 0.0f;
    for (int k = threadIdx.x; k < columns; k += blockDim.x) {
        const float v = a[static_cast<size_t>(blockIdx.x) * columns + k], w = b[static_cast<size_t>(blockIdx.x) * columns + k];
        ab += v * w, aa += v * v, bb += w * w;
    }
    ab = block_sum(ab), aa = block_sum(aa), bb = block_sum(bb);
    if (threadIdx.x == 0) y[blockIdx.x] = ab * rsqrtf(aa * bb);
}
__global__ void divergence(const float* p, const float* q, float* y, int columns) {
    float sum = 0.0f;
    for (int k = threadIdx.x; k < columns; k += blockDim.x) {
        const float v = fabsf(p[static_cast<size_t>(blockIdx.x) * columns + k]) + 0.01f;
        const float w = fabsf(q[static_cast<size_t>(blockIdx.x) * columns + k]) + 0.01f;
        sum += v * (logf(v) - logf(w));
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

CASE(huber_loss) {
    const int n = 5'000'000;
    const auto x = run.values<float>(n, 60), t = run.values<float>(n, 61), loss = run.empty<float>(1);
    run.before([=] { cudaMemsetAsync(loss, 0, sizeof(float)); });
    run.call([=] { huber<<<132 * 4, 256>>>(x, t, loss, n); });
    run.output("loss", loss, 1, 256);
}
CASE(cosine_rows) {
    const int rows = 5000, columns = 768;
    const auto a = run.values<float>(rows * columns, 62), b = run.values<float>(rows * columns, 63), y = run.empty<float>(rows);
    run.call([=] { cosines<<<rows, 128>>>(a, b, y, columns); });
    run.output("y", y, rows, kApproximate);
}
CASE(divergence_rows) {
    const int rows = 3000, columns = 1000;
    const auto p = run.values<float>(rows * columns, 64), q = run.values<float>(rows * columns, 65), y = run.empty<float>(rows);
    run.call([=] { divergence<<<rows, 128>>>(p, q, y, columns); });
    run.output("y", y, rows, 4096);
}

CONFORMANCE_MAIN
