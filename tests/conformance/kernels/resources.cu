// Banks, registers, shared memory, local memory and occupancy: kernels that one resource of the SM limits.
#include "conformance.hpp"

using conformance::blocks_for;

// Lane l of a warp touches word l * Stride of shared memory: conflicts of degree gcd(Stride, 32).
template <int Stride>
__global__ void strided_banks(const float* x, float* y, int rounds) {
    __shared__ float words[32 * 33 + 1024];
    const int t = threadIdx.x;
    for (int i = t; i < 32 * 33 + 1024; i += 256) words[i] = x[i];
    __syncthreads();
    int at = t % 32 * Stride;
    float sum = 0.0f;
    for (int i = 0; i < rounds; ++i) {
        sum += words[at + (i & 15)];
    }
    y[blockIdx.x * 256 + t] = sum;
}

template <class T>
__global__ void wide_words(const T* x, T* y, int rounds) {
    __shared__ T words[512];
    const int t = threadIdx.x;
    words[t] = x[t];
    words[t + 256] = x[t + 256];
    for (int i = 0; i < rounds; ++i) {
        __syncthreads();
        const T one = words[(t + 2 * i) & 511], other = words[(t + 256 + 2 * i) & 511];
        __syncthreads();
        words[t] = other;
        words[t + 256] = one;
    }
    __syncthreads();
    y[blockIdx.x * 256 + t] = words[t];
}

template <int Stride>
void banks_case(conformance::Run& run) {
    const int blocks = 132 * 8 + 5;
    const auto x = run.values<float>(32 * 33 + 1024, 61);
    const auto y = run.empty<float>(blocks * 256);
    run.call([=] { strided_banks<Stride><<<blocks, 256>>>(x, y, 400); });
    run.output("y", y, blocks * 256);
}

CASE(banks_broadcast) { banks_case<0>(run); }
CASE(banks_stride_1) { banks_case<1>(run); }
CASE(banks_stride_2) { banks_case<2>(run); }
CASE(banks_stride_4) { banks_case<4>(run); }
CASE(banks_stride_8) { banks_case<8>(run); }
CASE(banks_stride_16) { banks_case<16>(run); }
CASE(banks_stride_32) { banks_case<32>(run); }
CASE(banks_stride_33) { banks_case<33>(run); }

CASE(shared_wide_float2) {
    const auto x = run.values<float>(1024, 61);
    const auto y = run.empty<float>(1057 * 512);
    run.call([=] { wide_words<<<1057, 256>>>((const float2*)x, (float2*)y, 60); });
    run.output("y", y, 1057 * 512);
}
CASE(shared_wide_float4) {
    const auto x = run.values<float>(2048, 61);
    const auto y = run.empty<float>(1057 * 1024);
    run.call([=] { wide_words<<<1057, 256>>>((const float4*)x, (float4*)y, 60); });
    run.output("y", y, 1057 * 1024);
}

// A table of 160 KB leaves room for one block of the SM.
__global__ void large_table(const float4* table, const int* places, float* y, int n) {
    extern __shared__ float4 own[];
    for (int i = threadIdx.x; i < 10240; i += blockDim.x) own[i] = table[i];
    __syncthreads();
    const float* words = reinterpret_cast<const float*>(own);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = words[places[i]];
}

__global__ void small_table(const float* table, const int* places, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = table[places[i]];
}

CASE(table_in_shared_memory) {
    const int n = 6'000'023;
    const auto table = run.values<float>(40960, 62);
    const auto places = run.integers<int>(n, 63, 40960);
    const auto y = run.empty<float>(n);
    conformance::check(cudaFuncSetAttribute(large_table, cudaFuncAttributeMaxDynamicSharedMemorySize, 163840),
                       "asking for 160 KB of shared memory");
    run.call([=] { large_table<<<132, 512, 163840>>>((const float4*)table, places, y, n); });
    run.output("y", y, n);
}
CASE(table_in_global_memory) {
    const int n = 6'000'023;
    const auto table = run.values<float>(40960, 62);
    const auto places = run.integers<int>(n, 63, 40960);
    const auto y = run.empty<float>(n);
    run.call([=] { small_table<<<blocks_for(n, 256), 256>>>(table, places, y, n); });
    run.output("y", y, n);
}

// Blocks of one warp that ask for much shared memory: few warps on an SM wait for memory.
__global__ void few_warps(const float* x, float* y, int n, int per_thread) {
    extern __shared__ float idle[];
    if (per_thread < 0) idle[threadIdx.x] = 0.0f;
    const int base = blockIdx.x * blockDim.x * per_thread + threadIdx.x;
    for (int k = 0; k < per_thread; ++k) {
        const int i = base + k * blockDim.x;
        if (i < n) y[i] = x[i] * 1.5f + 0.5f;
    }
}

void occupancy_case(conformance::Run& run, int threads, int shared) {
    const int n = 8'000'021, per_thread = 8;
    const auto x = run.values<float>(n, 64);
    const auto y = run.empty<float>(n);
    conformance::check(cudaFuncSetAttribute(few_warps, cudaFuncAttributeMaxDynamicSharedMemorySize, 102400),
                       "asking for 100 KB of shared memory");
    run.call([=] { few_warps<<<blocks_for(n, threads * per_thread), threads, shared>>>(x, y, n, per_thread); });
    run.output("y", y, n);
}

CASE(occupancy_two_warps) { occupancy_case(run, 32, 102400); }
CASE(occupancy_eight_warps) { occupancy_case(run, 128, 102400); }
CASE(occupancy_full) { occupancy_case(run, 256, 0); }

// An array that is indexed by data lies in local memory.
__global__ void local_array(const int* x, int* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int counts[16] = {};
    for (int k = 0; k < 24; ++k) ++counts[x[(i + k * 1009) % n] & 15];
    int best = 0;
    for (int k = 0; k < 16; ++k) best = max(best, counts[k] * 16 + k);
    y[i] = best;
}

// The same with four counters in each of four words.
__global__ void packed_counts(const int* x, int* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long low = 0, high = 0;
    for (int k = 0; k < 24; ++k) {
        const int bin = x[(i + k * 1009) % n] & 15;
        const unsigned long long one = 1ull << (bin & 7) * 8;
        low += bin < 8 ? one : 0;
        high += bin < 8 ? 0 : one;
    }
    int best = 0;
    for (int k = 0; k < 16; ++k) {
        const int count = static_cast<int>((k < 8 ? low : high) >> (k & 7) * 8 & 255);
        best = max(best, count * 16 + k);
    }
    y[i] = best;
}

CASE(local_memory_array) {
    const int n = 900'007;
    const auto x = run.integers<int>(n, 65, 1 << 20);
    const auto y = run.empty<int>(n);
    run.call([=] { local_array<<<blocks_for(n, 128), 128>>>(x, y, n); });
    run.output("y", y, n);
}
CASE(local_memory_avoided) {
    const int n = 900'007;
    const auto x = run.integers<int>(n, 65, 1 << 20);
    const auto y = run.empty<int>(n);
    run.call([=] { packed_counts<<<blocks_for(n, 128), 128>>>(x, y, n); });
    run.output("y", y, n);
}

// 64 running sums per thread; the bound of 1024 threads leaves 64 registers, so that some spill.
template <int Threads>
__global__ void __launch_bounds__(Threads) many_sums(const float* x, float* y, int n, int rounds) {
    const int i = blockIdx.x * Threads + threadIdx.x;
    float sums[64];
#pragma unroll
    for (int k = 0; k < 64; ++k) sums[k] = static_cast<float>(k);
    for (int r = 0; r < rounds; ++r) {
        const float value = x[(i + r * 32) % n];
#pragma unroll
        for (int k = 0; k < 64; ++k) sums[k] = fmaf(sums[(k + 17) % 64], 0.5f, value);
    }
    float total = 0.0f;
#pragma unroll
    for (int k = 0; k < 64; ++k) total = fmaf(total, 0.5f, sums[k]);
    if (i < n) y[i] = total;
}

CASE(registers_spilled) {
    const int n = 500'009;
    const auto x = run.values<float>(n, 66);
    const auto y = run.empty<float>(n);
    run.call([=] { many_sums<1024><<<blocks_for(n, 1024), 1024>>>(x, y, n, 16); });
    run.output("y", y, n);
}
CASE(registers_enough) {
    const int n = 500'009;
    const auto x = run.values<float>(n, 66);
    const auto y = run.empty<float>(n);
    run.call([=] { many_sums<128><<<blocks_for(n, 128), 128>>>(x, y, n, 16); });
    run.output("y", y, n);
}

CONFORMANCE_MAIN
