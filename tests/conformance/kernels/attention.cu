// Attention: three kernels with all scores in memory, one kernel with a running softmax, and one query over a long cache.
// Exponentials are approximations: outputs state their ulps.
#include "conformance.hpp"

using conformance::blocks_for;

constexpr int kHeads = 8, kLength = 301, kWidth = 64;

__global__ void scores_of(const float* q, const float* k, float* scores, int length) {
    const int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    if (row >= length || column >= length) return;
    const float* left = q + (blockIdx.z * length + row) * kWidth;
    const float* right = k + (blockIdx.z * length + column) * kWidth;
    float sum = 0.0f;
    for (int d = 0; d < kWidth; ++d) sum += left[d] * right[d];
    scores[(blockIdx.z * length + row) * length + column] = sum * 0.125f;
}

__global__ void softmax_of(float* scores, int length) {
    float* row = scores + static_cast<size_t>(blockIdx.x) * length;
    float largest = -INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < length; i += 32) largest = fmaxf(largest, row[i]);
    for (int step = 16; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
    for (int i = threadIdx.x; i < length; i += 32) sum += row[i] = expf(row[i] - largest);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    for (int i = threadIdx.x; i < length; i += 32) row[i] /= sum;
}

__global__ void weighted(const float* scores, const float* v, float* y, int length) {
    const int d = threadIdx.x, row = blockIdx.x * 4 + threadIdx.y;
    if (row >= length) return;
    float sum = 0.0f;
    for (int i = 0; i < length; ++i)
        sum += scores[(blockIdx.y * length + row) * length + i] * v[(blockIdx.y * length + i) * kWidth + d];
    y[(blockIdx.y * length + row) * kWidth + d] = sum;
}

// A block of 64 threads holds 64 queries, one per thread, and walks over keys and values in tiles of 32.
__global__ void __launch_bounds__(64) running(const float* q, const float* k, const float* v, float* y, int length) {
    __shared__ float keys[32][kWidth], values[32][kWidth];
    const int t = threadIdx.x, row = blockIdx.x * 64 + t;
    const size_t head = static_cast<size_t>(blockIdx.y) * length * kWidth;
    float query[kWidth], sum[kWidth] = {}, largest = -INFINITY, total = 0.0f;
    for (int d = 0; d < kWidth; ++d) query[d] = row < length ? q[head + row * kWidth + d] * 0.125f : 0.0f;
    for (int begin = 0; begin < length; begin += 32) {
        const int count = min(32, length - begin);
        __syncthreads();
        for (int e = t; e < count * kWidth; e += 64) {
            keys[e / kWidth][e % kWidth] = k[head + begin * kWidth + e];
            values[e / kWidth][e % kWidth] = v[head + begin * kWidth + e];
        }
        __syncthreads();
        for (int i = 0; i < count; ++i) {
            float score = 0.0f;
#pragma unroll
            for (int d = 0; d < kWidth; ++d) score += query[d] * keys[i][d];
            const float before = largest;
            largest = fmaxf(largest, score);
            const float shrink = __expf(before - largest), weight = __expf(score - largest);
            total = total * shrink + weight;
#pragma unroll
            for (int d = 0; d < kWidth; ++d) sum[d] = sum[d] * shrink + weight * values[i][d];
        }
    }
    if (row < length)
        for (int d = 0; d < kWidth; ++d) y[head + row * kWidth + d] = sum[d] / total;
}

// A block per head: warps take keys in turn, then their parts are joined.
__global__ void one_query(const float* q, const float* k, const float* v, float* y, int length) {
    __shared__ float parts[8][kWidth], largests[8], totals[8];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const size_t head = static_cast<size_t>(blockIdx.x) * length * kWidth;
    const float2 query = reinterpret_cast<const float2*>(q + blockIdx.x * kWidth)[lane];
    float2 sum = make_float2(0.0f, 0.0f);
    float largest = -INFINITY, total = 0.0f;
    for (int i = warp; i < length; i += 8) {
        const float2 key = reinterpret_cast<const float2*>(k + head + i * kWidth)[lane];
        float score = query.x * key.x + query.y * key.y;
        for (int step = 16; step > 0; step /= 2) score += __shfl_xor_sync(0xffffffffu, score, step);
        score *= 0.125f;
        const float before = largest;
        largest = fmaxf(largest, score);
        const float shrink = __expf(before - largest), weight = __expf(score - largest);
        const float2 value = reinterpret_cast<const float2*>(v + head + i * kWidth)[lane];
        total = total * shrink + weight;
        sum = make_float2(sum.x * shrink + weight * value.x, sum.y * shrink + weight * value.y);
    }
    reinterpret_cast<float2*>(parts[warp])[lane] = sum;
    if (lane == 0) largests[warp] = largest, totals[warp] = total;
    __syncthreads();
    if (threadIdx.x >= kWidth) return;
    float whole = -INFINITY, all = 0.0f, result = 0.0f;
    for (int w = 0; w < 8; ++w) whole = fmaxf(whole, largests[w]);
    for (int w = 0; w < 8; ++w) {
        const float scale = __expf(largests[w] - whole);
        all += totals[w] * scale;
        result += parts[w][threadIdx.x] * scale;
    }
    y[blockIdx.x * kWidth + threadIdx.x] = result / all;
}

CASE(attention_three_kernels) {
    const int n = kHeads * kLength * kWidth;
    const auto q = run.values<float>(n, 45), k = run.values<float>(n, 46), v = run.values<float>(n, 47);
    const auto scores = run.empty<float>(kHeads * kLength * kLength), y = run.empty<float>(n);
    run.call([=] {
        const unsigned tiles = blocks_for(kLength, 16);
        scores_of<<<dim3(tiles, tiles, kHeads), dim3(16, 16)>>>(q, k, scores, kLength);
        softmax_of<<<kHeads * kLength, 32>>>(scores, kLength);
        weighted<<<dim3(blocks_for(kLength, 4), kHeads), dim3(kWidth, 4)>>>(scores, v, y, kLength);
    });
    run.output("y", y, n, 64);
}
CASE(attention_running_softmax) {
    const int n = kHeads * kLength * kWidth;
    const auto q = run.values<float>(n, 45), k = run.values<float>(n, 46), v = run.values<float>(n, 47);
    const auto y = run.empty<float>(n);
    run.call([=] { running<<<dim3(blocks_for(kLength, 64), kHeads), 64>>>(q, k, v, y, kLength); });
    run.output("y", y, n, 64);
}
CASE(attention_one_query) {
    const int heads = 131, length = 2003;
    const auto q = run.values<float>(heads * kWidth, 45);
    const auto k = run.values<float>(heads * length * kWidth, 46), v = run.values<float>(heads * length * kWidth, 47);
    const auto y = run.empty<float>(heads * kWidth);
    run.call([=] { one_query<<<heads, 256>>>(q, k, v, y, length); });
    run.output("y", y, heads * kWidth, 64);
}

CONFORMANCE_MAIN
