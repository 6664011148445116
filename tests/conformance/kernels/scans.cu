// Prefix sums in a block and along rows, histograms, and atomics with and without contention.
#include "conformance.hpp"

#include <cub/block/block_scan.cuh>

using conformance::blocks_for;

constexpr int kCount = 8'000'017;

__global__ void hillis_steele(const float* x, float* y, int n) {
    __shared__ float sums[2][256];
    const int t = threadIdx.x, i = blockIdx.x * 256 + t;
    int from = 0;
    sums[0][t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int step = 1; step < 256; step *= 2) {
        sums[1 - from][t] = t >= step ? sums[from][t] + sums[from][t - step] : sums[from][t];
        from = 1 - from;
        __syncthreads();
    }
    if (i < n) y[i] = sums[from][t];
}

// Up and down a tree whose steps of powers of two meet in few banks.
template <bool Padded>
__global__ void blelloch(const float* x, float* y, int n) {
    __shared__ float sums[512 + 512 / 32];
    const auto place = [](int i) { return Padded ? i + i / 32 : i; };
    const int t = threadIdx.x, first = blockIdx.x * 512 + 2 * t;
    sums[place(2 * t)] = first < n ? x[first] : 0.0f;
    sums[place(2 * t + 1)] = first + 1 < n ? x[first + 1] : 0.0f;
    int offset = 1;
    for (int d = 256; d > 0; d /= 2, offset *= 2) {
        __syncthreads();
        if (t < d) sums[place(offset * (2 * t + 2) - 1)] += sums[place(offset * (2 * t + 1) - 1)];
    }
    if (t == 0) sums[place(511)] = 0.0f;
    for (int d = 1; d <= 256; d *= 2) {
        offset /= 2;
        __syncthreads();
        if (t < d) {
            const int a = place(offset * (2 * t + 1) - 1), b = place(offset * (2 * t + 2) - 1);
            const float left = sums[a];
            sums[a] = sums[b];
            sums[b] += left;
        }
    }
    __syncthreads();
    if (first < n) y[first] = sums[place(2 * t)];
    if (first + 1 < n) y[first + 1] = sums[place(2 * t + 1)];
}

__device__ float inclusive_warp_scan(float value) {
    for (int step = 1; step < 32; step *= 2) {
        const float left = __shfl_up_sync(0xffffffffu, value, step);
        if (static_cast<int>(threadIdx.x % 32) >= step) value += left;
    }
    return value;
}

__device__ float inclusive_block_scan(float value, float* warps) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    value = inclusive_warp_scan(value);
    if (lane == 31) warps[warp] = value;
    __syncthreads();
    if (warp == 0) {
        const float total = lane < static_cast<int>(blockDim.x / 32) ? warps[lane] : 0.0f;
        warps[lane] = inclusive_warp_scan(total);
    }
    __syncthreads();
    return warp > 0 ? value + warps[warp - 1] : value;
}

__global__ void shuffle_scan(const float* x, float* y, int n) {
    __shared__ float warps[32];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float value = inclusive_block_scan(i < n ? x[i] : 0.0f, warps);
    if (i < n) y[i] = value;
}

__global__ void cub_scan(const float* x, float* y, int n) {
    using Scan = cub::BlockScan<float, 256>;
    __shared__ typename Scan::TempStorage storage;
    float items[4];
    const int first = (blockIdx.x * 256 + threadIdx.x) * 4;
    for (int k = 0; k < 4; ++k) items[k] = first + k < n ? x[first + k] : 0.0f;
    Scan(storage).InclusiveSum(items, items);
    for (int k = 0; k < 4; ++k)
        if (first + k < n) y[first + k] = items[k];
}

__global__ void row_per_thread(const float* x, float* y, int rows, int columns) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = 0; k < columns; ++k) {
        sum += x[row * columns + k];
        y[row * columns + k] = sum;
    }
}

__global__ void row_per_block(const float* x, float* y, int columns) {
    __shared__ float warps[32];
    __shared__ float carry;
    if (threadIdx.x == 0) carry = 0.0f;
    for (int begin = 0; begin < columns; begin += blockDim.x) {
        const int k = begin + threadIdx.x;
        const float value = inclusive_block_scan(k < columns ? x[blockIdx.x * columns + k] : 0.0f, warps);
        const float before = carry;
        __syncthreads();
        if (k < columns) y[blockIdx.x * columns + k] = before + value;
        if (threadIdx.x == blockDim.x - 1) carry = before + value;
        __syncthreads();
    }
}

template <class Kernel>
void scan_case(conformance::Run& run, Kernel kernel, int per_block) {
    const auto x = run.values<float>(kCount, 11);
    const auto y = run.empty<float>(kCount);
    run.call([=] { kernel<<<blocks_for(kCount, per_block), 256>>>(x, y, kCount); });
    run.output("y", y, kCount);
}

CASE(scan_hillis_steele) { scan_case(run, hillis_steele, 256); }
CASE(scan_blelloch_conflicts) { scan_case(run, blelloch<false>, 512); }
CASE(scan_blelloch_padded) { scan_case(run, blelloch<true>, 512); }
CASE(scan_shuffle) { scan_case(run, shuffle_scan, 256); }
CASE(scan_cub_block) { scan_case(run, cub_scan, 1024); }

constexpr int kRows = 2053, kColumns = 3001;

CASE(cumsum_row_thread) {
    const auto x = run.values<float>(kRows * kColumns, 11);
    const auto y = run.empty<float>(kRows * kColumns);
    run.call([=] { row_per_thread<<<blocks_for(kRows, 32), 32>>>(x, y, kRows, kColumns); });
    run.output("y", y, kRows * kColumns);
}
CASE(cumsum_row_block) {
    const auto x = run.values<float>(kRows * kColumns, 11);
    const auto y = run.empty<float>(kRows * kColumns);
    run.call([=] { row_per_block<<<kRows, 512>>>(x, y, kColumns); });
    run.output("y", y, kRows * kColumns);
}

constexpr unsigned kBins = 256;

__global__ void histogram_global(const unsigned* x, unsigned* bins, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(bins + x[i] % kBins, 1u);
}

__global__ void histogram_shared(const unsigned* x, unsigned* bins, int n) {
    __shared__ unsigned own[kBins];
    for (unsigned k = threadIdx.x; k < kBins; k += blockDim.x) own[k] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(own + x[i] % kBins, 1u);
    __syncthreads();
    for (unsigned k = threadIdx.x; k < kBins; k += blockDim.x)
        if (own[k] != 0) atomicAdd(bins + k, own[k]);
}

__global__ void histogram_per_warp(const unsigned* x, unsigned* bins, int n) {
    __shared__ unsigned own[8][kBins];
    for (unsigned k = threadIdx.x; k < 8 * kBins; k += blockDim.x) own[0][k] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(own[threadIdx.x / 32] + x[i] % kBins, 1u);
    __syncthreads();
    for (unsigned k = threadIdx.x; k < kBins; k += blockDim.x) {
        unsigned sum = 0;
        for (int w = 0; w < 8; ++w) sum += own[w][k];
        atomicAdd(bins + k, sum);
    }
}

template <class Kernel>
void histogram_case(conformance::Run& run, Kernel kernel, unsigned blocks, unsigned bound) {
    const auto x = run.integers<unsigned>(kCount, 13, bound);
    const auto bins = run.empty<unsigned>(kBins);
    run.before([=] { cudaMemsetAsync(bins, 0, kBins * sizeof(unsigned)); });
    run.call([=] { kernel<<<blocks, 256>>>(x, bins, kCount); });
    run.output("bins", bins, kBins);
}

CASE(histogram_global_atomics) { histogram_case(run, histogram_global, blocks_for(kCount, 256), 1u << 24); }
CASE(histogram_shared_atomics) { histogram_case(run, histogram_shared, 132 * 4, 1u << 24); }
CASE(histogram_per_warp) { histogram_case(run, histogram_per_warp, 132 * 4, 1u << 24); }
CASE(histogram_shared_skewed) { histogram_case(run, histogram_shared, 132 * 4, 3); }
CASE(histogram_per_warp_skewed) { histogram_case(run, histogram_per_warp, 132 * 4, 3); }

__global__ void count_far_apart(unsigned* counters, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(counters + i, static_cast<unsigned>(i) & 7u);
}

__global__ void take_tickets(unsigned* counter, unsigned* tickets, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && i % 3 == 0) {
        const unsigned ticket = atomicAdd(counter + i % 61, 1u);
        tickets[i] = ticket < 1000000u;
    }
}

CASE(atomics_uncontended) {
    const int n = 3'000'007;
    const auto counters = run.empty<unsigned>(n);
    run.before([=] { cudaMemsetAsync(counters, 0, n * sizeof(unsigned)); });
    run.call([=] { count_far_apart<<<blocks_for(n, 256), 256>>>(counters, n); });
    run.output("counters", counters, n);
}

CASE(atomics_tickets) {
    const int n = 300'007;
    const auto counter = run.empty<unsigned>(64);
    const auto tickets = run.empty<unsigned>(n);
    run.before([=] {
        cudaMemsetAsync(counter, 0, 64 * sizeof(unsigned));
        cudaMemsetAsync(tickets, 0, n * sizeof(unsigned));
    });
    run.call([=] { take_tickets<<<blocks_for(n, 256), 256>>>(counter, tickets, n); });
    run.output("counter", counter, 64);
    run.output("tickets", tickets, n);
}

CONFORMANCE_MAIN
