// Warps that wait: chains of loads, few warps on an SM, lines that many blocks ask for, barriers, tails, short launches.
#include "conformance.hpp"

using conformance::blocks_for;

constexpr int kSms = 132;

// Each thread follows a chain of places; lanes of a warp share one chain or have one each. Loads may pass by the L1.
template <bool Around>
__global__ void chase(const int* next, int* y, int words, int steps, int lanes) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int at = static_cast<int>((static_cast<long long>(i / lanes) * 7919) % words);
    for (int k = 0; k < steps; ++k) at = Around ? __ldcg(next + at) : next[at];
    y[i] = at;
}

template <bool Around>
void chase_case(conformance::Run& run, int words, int steps, int lanes, int threads) {
    // A single cycle through all places: the step is odd and words a power of two.
    const auto next = run.upload<int>(words, [=](size_t i) { return static_cast<int>((i + 40503) & (words - 1)); });
    const auto y = run.empty<int>(kSms * threads);
    run.call([=] { chase<Around><<<kSms, threads>>>(next, y, words, steps, lanes); });
    run.output("y", y, kSms * threads);
}

CASE(chase_l1_lanes_together) { chase_case<false>(run, 4096, 1000, 32, 32); }
CASE(chase_l1_lanes_apart) { chase_case<false>(run, 4096, 500, 1, 32); }
CASE(chase_l2_lanes_together) { chase_case<true>(run, 1 << 16, 600, 32, 32); }
CASE(chase_l2_lanes_apart) { chase_case<true>(run, 1 << 16, 200, 1, 32); }
CASE(chase_l2_eight_warps) { chase_case<true>(run, 1 << 16, 200, 32, 256); }
CASE(chase_dram_lanes_together) { chase_case<false>(run, 1 << 25, 200, 32, 64); }

// A chain through shared memory: the short scoreboard.
__global__ void shared_chase(const int* next, int* y, int steps) {
    __shared__ int own[2048];
    for (int i = threadIdx.x; i < 2048; i += blockDim.x) own[i] = next[i];
    __syncthreads();
    int at = threadIdx.x;
    for (int k = 0; k < steps; ++k) at = own[at];
    y[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

void shared_chase_case(conformance::Run& run, int threads, int step) {
    const auto next = run.upload<int>(2048, [=](size_t i) { return static_cast<int>((i + step) % 2048); });
    const auto y = run.empty<int>(kSms * threads);
    run.call([=] { shared_chase<<<kSms, threads>>>(next, y, 600); });
    run.output("y", y, kSms * threads);
}

CASE(shared_chase_one_warp) { shared_chase_case(run, 32, 33); }
CASE(shared_chase_sixteen_warps) { shared_chase_case(run, 512, 33); }

// Sums of words that lie in the L2 or come from DRAM; a block per SM of 1 to 16 warps.
__global__ void walk(const float* x, float* y, int per_block) {
    const float* in = x + static_cast<size_t>(blockIdx.x) * per_block;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < per_block; i += blockDim.x) sum += in[i];
    y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

void walk_case(conformance::Run& run, int threads, int per_block) {
    const auto x = run.values<float>(kSms * per_block, 11);
    const auto y = run.empty<float>(kSms * threads);
    run.call([=] { walk<<<kSms, threads>>>(x, y, per_block); });
    run.output("y", y, kSms * threads);
}

CASE(walk_one_warp) { walk_case(run, 32, 20'000); }
CASE(walk_two_warps) { walk_case(run, 64, 30'000); }
CASE(walk_four_warps) { walk_case(run, 128, 40'000); }
CASE(walk_sixteen_warps) { walk_case(run, 512, 80'000); }

// Dependent products and sums: what the fixed latency costs few warps.
template <int Chains>
__global__ void chains_of_fma(const float* x, float* y, int rounds) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value[Chains];
    for (int c = 0; c < Chains; ++c) value[c] = x[i] + 0.125f * c;
#pragma unroll 8
    for (int k = 0; k < rounds; ++k)
        for (int c = 0; c < Chains; ++c) value[c] = fmaf(value[c], 0.75f, 0.125f);
    float sum = 0.0f;
    for (int c = 0; c < Chains; ++c) sum += value[c];
    y[i] = sum;
}

template <int Chains>
void chains_case(conformance::Run& run, int blocks, int threads, int rounds) {
    const auto x = run.values<float>(blocks * threads, 12);
    const auto y = run.empty<float>(blocks * threads);
    run.call([=] { chains_of_fma<Chains><<<blocks, threads>>>(x, y, rounds); });
    run.output("y", y, blocks * threads, 4);
}

CASE(fma_chain_one_warp) { chains_case<1>(run, kSms, 32, 8000); }
CASE(fma_chain_eight_warps) { chains_case<1>(run, kSms, 256, 4000); }
CASE(fma_chain_full) { chains_case<1>(run, kSms * 8, 256, 1000); }
CASE(fma_four_chains_four_warps) { chains_case<4>(run, kSms, 128, 3000); }
CASE(fma_one_block) { chains_case<2>(run, 1, 256, 6000); }

// 1.1 waves of equal blocks, and exactly one.
CASE(tail_one_wave) { chains_case<2>(run, kSms * 2, 1024, 600); }
CASE(tail_one_more_block) { chains_case<2>(run, kSms * 2 + 13, 1024, 600); }

// All blocks read the same words in the same order, or each from its own place on.
__global__ void shared_words(const float4* x, float* y, int words, int shift) {
    const int begin = blockIdx.x * shift % words;
    float sum = 0.0f;
    for (int k = threadIdx.x; k < words; k += blockDim.x) {
        int at = begin + k;
        if (at >= words) at -= words;
        const float4 v = x[at];
        sum += (v.x + v.y) + (v.z + v.w);
    }
    y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

void shared_words_case(conformance::Run& run, int words, int shift) {
    const auto x = run.values<float>(4 * words, 13);
    const auto y = run.empty<float>(kSms * 4 * 256);
    run.call([=] { shared_words<<<kSms * 4, 256>>>((const float4*)x, y, words, shift); });
    run.output("y", y, kSms * 4 * 256);
}

CASE(lockstep_same_order) { shared_words_case(run, 64 * 1024, 0); }
CASE(lockstep_own_order) { shared_words_case(run, 64 * 1024, 1237); }

// Rounds of exchange through device memory within a block: loads of lines that have just been stored.
__global__ void exchange(float* x, int rounds) {
    float* own = x + blockIdx.x * 512;
    for (int k = 0; k < rounds; ++k) {
        const float value = own[(threadIdx.x + 33) & 511] * 0.5f + own[threadIdx.x];
        __syncthreads();
        own[threadIdx.x] = value;
        __syncthreads();
    }
}

CASE(exchange_through_memory) {
    const int n = kSms * 4 * 512;
    const auto from = run.values<float>(n, 14);
    const auto x = run.empty<float>(n);
    run.before([=] { cudaMemcpyAsync(x, from, n * sizeof(float), cudaMemcpyDeviceToDevice); });
    run.call([=] { exchange<<<kSms * 4, 512>>>(x, 20); });
    run.output("x", x, n, 4);
}

// Rounds between barriers; with `uneven` warp 0 does as much again as all others together would in a round.
__global__ void barriers(const float* x, float* y, int rounds, int work, int uneven) {
    __shared__ float words[1024];
    const int t = threadIdx.x, n = blockDim.x;
    words[t] = x[t];
    __syncthreads();
    for (int k = 0; k < rounds; ++k) {
        float value = words[(t + 1) % n];
        const int steps = t < 32 ? work + uneven : work;
        for (int s = 0; s < steps; ++s) value = fmaf(value, 0.75f, 0.125f);
        __syncthreads();
        words[t] = value;
        __syncthreads();
    }
    y[blockIdx.x * n + t] = words[t];
}

void barriers_case(conformance::Run& run, int blocks, int threads, int rounds, int work, int uneven) {
    const auto x = run.values<float>(1024, 15);
    const auto y = run.empty<float>(blocks * threads);
    run.call([=] { barriers<<<blocks, threads>>>(x, y, rounds, work, uneven); });
    run.output("y", y, blocks * threads);
}

CASE(barriers_two_warps) { barriers_case(run, kSms, 64, 300, 8, 0); }
CASE(barriers_eight_warps) { barriers_case(run, kSms * 8, 256, 100, 8, 0); }
CASE(barriers_thirty_two_warps) { barriers_case(run, kSms * 2, 1024, 100, 8, 0); }
CASE(barriers_uneven_work) { barriers_case(run, kSms * 4, 256, 60, 8, 64); }

// Blocks of very different length; the long ones begin first, or last.
__global__ void unequal(const float* x, float* y, int blocks, int longs, int last) {
    const int b = last ? blocks - 1 - blockIdx.x : blockIdx.x;
    const int steps = b < longs ? 8000 : 250;
    float value = x[threadIdx.x];
#pragma unroll 4
    for (int k = 0; k < steps; ++k) value = fmaf(value, 0.75f, 0.125f);
    y[b * blockDim.x + threadIdx.x] = value;
}

void unequal_case(conformance::Run& run, int longs, int last) {
    const int blocks = 4000;
    const auto x = run.values<float>(256, 16);
    const auto y = run.empty<float>(blocks * 256);
    run.call([=] { unequal<<<blocks, 256>>>(x, y, blocks, longs, last); });
    run.output("y", y, blocks * 256);
}

CASE(long_blocks_first) { unequal_case(run, 40, 0); }
CASE(long_blocks_last) { unequal_case(run, 40, 1); }

// Short launches, alone and one after the other.
__global__ void scale(const float* x, float* y, int n, float by) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * by;
}

void scale_case(conformance::Run& run, int n, int launches) {
    const auto x = run.values<float>(n, 17);
    const auto y = run.empty<float>(n);
    run.call([=] {
        for (int k = 0; k < launches; ++k) scale<<<blocks_for(n, 128), 128>>>(k == 0 ? x : y, y, n, 0.5f);
    });
    run.output("y", y, n);
}

CASE(short_one_block) { scale_case(run, 100, 1); }
CASE(short_hundred_blocks) { scale_case(run, 12'800, 1); }
CASE(short_thousand_blocks) { scale_case(run, 256'000, 1); }
CASE(short_eight_launches) { scale_case(run, 256'000, 8); }
CASE(large_three_launches) { scale_case(run, 4'000'000, 3); }

CONFORMANCE_MAIN
