// Tokens and heads: attention with tiles, over a cache, with a mask; embeddings and their gradients; permuted axes.
// Exponentials are approximations: outputs state their ulps.
#include "conformance.hpp"

using conformance::blocks_for;

constexpr double kApproximate = 512;

// A warp per query: lanes hold two channels each and walk over the keys before it.
__global__ void attention_warp(const float2* q, const float2* k, const float2* v, float2* y, int length) {
    const int lane = threadIdx.x % 32, row = blockIdx.x * 4 + threadIdx.x / 32;
    const size_t head = static_cast<size_t>(blockIdx.y) * length * 32;
    if (row >= length) return;
    const float2 query = q[head + row * 32 + lane];
    float2 sum = make_float2(0.0f, 0.0f);
    float most = -INFINITY, total = 0.0f;
    for (int i = 0; i <= row; ++i) {
        const float2 key = k[head + i * 32 + lane], value = v[head + i * 32 + lane];
        float score = query.x * key.x + query.y * key.y;
        for (int step = 16; step > 0; step /= 2) score += __shfl_xor_sync(0xffffffffu, score, step);
        const float now = fmaxf(most, score * 0.125f), shrink = __expf(most - now), weight = __expf(score * 0.125f - now);
        most = now, total = total * shrink + weight;
        sum = make_float2(sum.x * shrink + weight * value.x, sum.y * shrink + weight * value.y);
    }
    y[head + row * 32 + lane] = make_float2(sum.x / total, sum.y / total);
}

// 32 queries of a block, keys and values in tiles of 32; a warp scores a key per lane, then weighs the values.
__global__ void __launch_bounds__(256) attention_tiles(const float* q, const float* k, const float* v, float* y, int length) {
    __shared__ float queries[32][65], keys[32][65], values[32][64], weights[32][33];
    const int t = threadIdx.x, lane = t % 32, warp = t / 32, first = blockIdx.x * 32;
    const size_t head = static_cast<size_t>(blockIdx.y) * length * 64;
    for (int e = t; e < 2048; e += 256) queries[e / 64][e % 64] = first + e / 64 < length ? q[head + first * 64 + e] * 0.125f : 0.0f;
    float most[4], total[4] = {}, low[4] = {}, high[4] = {};
    for (int r = 0; r < 4; ++r) most[r] = -INFINITY;
    for (int begin = 0; begin < length; begin += 32) {
        __syncthreads();
        for (int e = t; e < 2048; e += 256) {
            const bool inside = begin + e / 64 < length;
            keys[e / 64][e % 64] = inside ? k[head + begin * 64 + e] : 0.0f;
            values[e / 64][e % 64] = inside ? v[head + begin * 64 + e] : 0.0f;
        }
        __syncthreads();
        float scores[4] = {};
#pragma unroll 16
        for (int d = 0; d < 64; ++d) {
            const float key = keys[lane][d];
#pragma unroll
            for (int r = 0; r < 4; ++r) scores[r] = fmaf(queries[warp * 4 + r][d], key, scores[r]);
        }
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            float now = begin + lane < length ? scores[r] : -INFINITY;
            const float score = now;
            for (int step = 16; step > 0; step /= 2) now = fmaxf(now, __shfl_xor_sync(0xffffffffu, now, step));
            now = fmaxf(now, most[r]);
            const float weight = __expf(score - now), shrink = __expf(most[r] - now);
            float sum = weight;
            for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
            most[r] = now, total[r] = total[r] * shrink + sum, low[r] *= shrink, high[r] *= shrink;
            weights[warp * 4 + r][lane] = weight;
        }
        __syncwarp();
#pragma unroll 8
        for (int i = 0; i < 32; ++i) {
            const float a = values[i][lane], b = values[i][lane + 32];
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                const float weight = weights[warp * 4 + r][i];
                low[r] = fmaf(weight, a, low[r]), high[r] = fmaf(weight, b, high[r]);
            }
        }
    }
    for (int r = 0; r < 4; ++r) {
        const int row = first + warp * 4 + r;
        if (row >= length) continue;
        y[head + row * 64 + lane] = low[r] / total[r];
        y[head + row * 64 + lane + 32] = high[r] / total[r];
    }
}

// One query per head over a long cache in half precision: a block per head, or parts of the cache to several blocks.
__global__ void cached_query(const __half2* q, const __half2* k, const __half2* v, float* y, int length, int parts) {
    __shared__ float sums[8][64], mosts[8], totals[8];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, each = (length + parts - 1) / parts;
    const size_t head = static_cast<size_t>(blockIdx.x) * length * 32;
    const float2 query = __half22float2(q[blockIdx.x * 32 + lane]);
    float2 sum = make_float2(0.0f, 0.0f);
    float most = -1e30f, total = 0.0f;
    const int end = min(length, static_cast<int>(blockIdx.y + 1) * each);
    for (int i = blockIdx.y * each + warp; i < end; i += 8) {
        const float2 key = __half22float2(k[head + i * 32 + lane]), value = __half22float2(v[head + i * 32 + lane]);
        float score = query.x * key.x + query.y * key.y;
        for (int step = 16; step > 0; step /= 2) score += __shfl_xor_sync(0xffffffffu, score, step);
        const float now = fmaxf(most, score * 0.125f), shrink = __expf(most - now), weight = __expf(score * 0.125f - now);
        most = now, total = total * shrink + weight;
        sum = make_float2(sum.x * shrink + weight * value.x, sum.y * shrink + weight * value.y);
    }
    sums[warp][2 * lane] = sum.x, sums[warp][2 * lane + 1] = sum.y;
    if (lane == 0) mosts[warp] = most, totals[warp] = total;
    __syncthreads();
    if (threadIdx.x >= 64) return;
    float whole = -1e30f, all = 0.0f, result = 0.0f;
    for (int w = 0; w < 8; ++w) whole = fmaxf(whole, mosts[w]);
    for (int w = 0; w < 8; ++w) all += totals[w] * __expf(mosts[w] - whole), result += sums[w][threadIdx.x] * __expf(mosts[w] - whole);
    float* out = y + (static_cast<size_t>(blockIdx.x) * parts + blockIdx.y) * 66;
    out[threadIdx.x] = result;
    if (threadIdx.x == 0) out[64] = all, out[65] = whole;
}
__global__ void join_parts(const float* parts, float* y, int count) {
    const float* in = parts + static_cast<size_t>(blockIdx.x) * count * 66;
    float whole = -1e30f, all = 0.0f, result = 0.0f;
    for (int p = 0; p < count; ++p) whole = fmaxf(whole, in[p * 66 + 65]);
    for (int p = 0; p < count; ++p) {
        const float scale = __expf(in[p * 66 + 65] - whole);
        all += in[p * 66 + 64] * scale, result += in[p * 66 + threadIdx.x] * scale;
    }
    y[blockIdx.x * 64 + threadIdx.x] = result / all;
}

void attention_case(conformance::Run& run, int heads, int length, bool tiles) {
    const int n = heads * length * 64;
    const auto q = run.values<float>(n, 111), k = run.values<float>(n, 112), v = run.values<float>(n, 113), y = run.empty<float>(n);
    if (tiles) run.call([=] { attention_tiles<<<dim3(blocks_for(length, 32), heads), 256>>>(q, k, v, y, length); });
    else
        run.call([=] {
            attention_warp<<<dim3(blocks_for(length, 4), heads), 128>>>((const float2*)q, (const float2*)k, (const float2*)v, (float2*)y, length);
        });
    run.output("y", y, n, kApproximate);
}
void cached_case(conformance::Run& run, int parts) {
    const int heads = 32, length = 4000, n = heads * length * 64;
    const auto q = run.values<__half>(heads * 64, 114), k = run.values<__half>(n, 115), v = run.values<__half>(n, 116);
    const auto between = run.empty<float>(heads * parts * 66), y = run.empty<float>(heads * 64);
    run.call([=] {
        cached_query<<<dim3(heads, parts), 256>>>((const __half2*)q, (const __half2*)k, (const __half2*)v, between, length, parts);
        join_parts<<<heads, 64>>>(between, y, parts);
    });
    run.output("y", y, heads * 64, 4096);
}

CASE(attention_causal_warp) { attention_case(run, 12, 400, false); }
CASE(attention_in_tiles) { attention_case(run, 12, 400, true); }
CASE(attention_in_tiles_large) { attention_case(run, 40, 400, true); }
CASE(cached_query_one_part) { cached_case(run, 1); }
CASE(cached_query_twelve_parts) { cached_case(run, 12); }

// Embeddings: a word per thread, or 16 bytes; their gradient by atomics, from random tokens.
__global__ void embed_half(const int* tokens, const __half* table, __half* y, int count, int width) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count * width) y[i] = table[static_cast<size_t>(tokens[i / width]) * width + i % width];
}
__global__ void embed_half8(const int* tokens, const uint4* table, uint4* y, int width8) {
    for (int k = threadIdx.x; k < width8; k += blockDim.x)
        y[blockIdx.x * width8 + k] = table[static_cast<size_t>(tokens[blockIdx.x]) * width8 + k];
}
__global__ void embedding_gradient(const int* tokens, const float* x, float* table, int count, int width) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count * width) atomicAdd(table + static_cast<size_t>(tokens[i / width]) * width + i % width, x[i]);
}

CASE(embed_half_scalar) {
    const int count = 8000, width = 512, words = 20'000;
    const auto tokens = run.integers<int>(count, 117, words);
    const auto table = run.values<__half>(words * width, 118), y = run.empty<__half>(count * width);
    run.call([=] { embed_half<<<blocks_for(count * width, 256), 256>>>(tokens, table, y, count, width); });
    run.output("y", y, count * width);
}
CASE(embed_half8_block) {
    const int count = 8000, width = 512, words = 20'000;
    const auto tokens = run.integers<int>(count, 117, words);
    const auto table = run.values<__half>(words * width, 118), y = run.empty<__half>(count * width);
    run.call([=] { embed_half8<<<count, 64>>>(tokens, (const uint4*)table, (uint4*)y, width / 8); });
    run.output("y", y, count * width);
}
CASE(embedding_gradient_atomics) {
    const int count = 4000, width = 256, words = 1000;
    const auto tokens = run.integers<int>(count, 119, words);
    const auto x = run.values<float>(count * width, 120), table = run.empty<float>(words * width);
    run.before([=] { cudaMemsetAsync(table, 0, words * width * sizeof(float)); });
    run.call([=] { embedding_gradient<<<blocks_for(count * width, 256), 256>>>(tokens, x, table, count, width); });
    run.output("table", table, words * width);
}

// (tokens, heads, width) to (heads, tokens, width), and to (heads, width, tokens) by places or by tiles.
__global__ void heads_first(const float* x, float* y, int tokens, int heads, int width) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= tokens * heads * width) return;
    const int d = i % width, token = i / width % tokens, head = i / (width * tokens);
    y[i] = x[(token * heads + head) * width + d];
}
__global__ void tokens_last(const float* x, float* y, int tokens, int heads, int width) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= tokens * heads * width) return;
    const int d = i % width, head = i / width % heads, token = i / (width * heads);
    y[(head * width + d) * tokens + token] = x[i];
}
__global__ void tokens_last_tiles(const float* x, float* y, int tokens, int channels) {
    __shared__ float tile[32][33];
    const int channel = blockIdx.x * 32 + threadIdx.x, token = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (token + k < tokens && channel < channels) tile[threadIdx.y + k][threadIdx.x] = x[(token + k) * channels + channel];
    __syncthreads();
    const int out = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (out < tokens && row + k < channels) y[(row + k) * tokens + out] = tile[threadIdx.x][threadIdx.y + k];
}

CASE(permute_heads_first) {
    const int tokens = 3000, heads = 16, width = 64, n = tokens * heads * width;
    const auto x = run.values<float>(n, 121), y = run.empty<float>(n);
    run.call([=] { heads_first<<<blocks_for(n, 256), 256>>>(x, y, tokens, heads, width); });
    run.output("y", y, n);
}
CASE(permute_tokens_last) {
    const int tokens = 3000, heads = 16, width = 64, n = tokens * heads * width;
    const auto x = run.values<float>(n, 121), y = run.empty<float>(n);
    run.call([=] { tokens_last<<<blocks_for(n, 256), 256>>>(x, y, tokens, heads, width); });
    run.output("y", y, n);
}
CASE(permute_tokens_last_tiles) {
    const int tokens = 3000, heads = 16, width = 64, n = tokens * heads * width;
    const auto x = run.values<float>(n, 121), y = run.empty<float>(n);
    run.call([=] { tokens_last_tiles<<<dim3(heads * width / 32, blocks_for(tokens, 32)), dim3(32, 8)>>>(x, y, tokens, heads * width); });
    run.output("y", y, n);
}

// A recurrence over time: a thread per channel, which no other can help.
__global__ void recurrence(const float* x, const float* decay, float* y, int steps, int channels) {
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= channels) return;
    const float keep = 0.5f + 0.25f * decay[c];
    float state = 0.0f;
    for (int t = 0; t < steps; ++t) {
        state = fmaf(state, keep, x[static_cast<size_t>(t) * channels + c]);
        y[static_cast<size_t>(t) * channels + c] = state;
    }
}

CASE(recurrence_few_channels) {
    const int steps = 1000, channels = 2048;
    const auto x = run.values<float>(steps * channels, 122), decay = run.values<float>(channels, 123), y = run.empty<float>(steps * channels);
    run.call([=] { recurrence<<<blocks_for(channels, 64), 64>>>(x, decay, y, steps, channels); });
    run.output("y", y, steps * channels, 64);
}

// The most likely of many words, in two launches; and a count of words.
__global__ void best_of_parts(const float* x, float* best, int* place, int words) {
    __shared__ float mosts[256];
    __shared__ int places[256];
    const int t = threadIdx.x, each = (words + gridDim.x - 1) / gridDim.x, first = blockIdx.x * each;
    float most = -INFINITY;
    int at = 0;
    for (int k = first + t; k < min(words, first + each); k += 256) {
        const float v = x[static_cast<size_t>(blockIdx.y) * words + k];
        if (v > most) most = v, at = k;
    }
    mosts[t] = most, places[t] = at;
    for (int step = 128; step > 0; step /= 2) {
        __syncthreads();
        if (t < step && (mosts[t + step] > mosts[t] || (mosts[t + step] == mosts[t] && places[t + step] < places[t])))
            mosts[t] = mosts[t + step], places[t] = places[t + step];
    }
    if (t == 0) best[blockIdx.y * gridDim.x + blockIdx.x] = mosts[0], place[blockIdx.y * gridDim.x + blockIdx.x] = places[0];
}
__global__ void best_of_all(const float* best, const int* place, int* y, int parts) {
    float most = -INFINITY;
    int at = 0;
    for (int p = 0; p < parts; ++p) {
        const float v = best[blockIdx.x * parts + p];
        if (v > most) most = v, at = place[blockIdx.x * parts + p];
    }
    if (threadIdx.x == 0) y[blockIdx.x] = at;
}

CASE(most_likely_words) {
    const int rows = 64, words = 50'000, parts = 8;
    const auto x = run.values<float>(rows * words, 124), best = run.empty<float>(rows * parts);
    const auto place = run.empty<int>(rows * parts), y = run.empty<int>(rows);
    run.call([=] {
        best_of_parts<<<dim3(parts, rows), 256>>>(x, best, place, words);
        best_of_all<<<rows, 32>>>(best, place, y, parts);
    });
    run.output("y", y, rows);
}

CONFORMANCE_MAIN
