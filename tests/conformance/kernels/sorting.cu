// Sorting and selecting: bitonic in shared memory and in global memory, a radix step, cub, ranks by counting.
#include "conformance.hpp"

#include <cub/block/block_radix_sort.cuh>

using conformance::blocks_for;

// Each block of 512 threads sorts 1024 keys.
__global__ void bitonic_shared(const unsigned* x, unsigned* y, int n) {
    __shared__ unsigned keys[1024];
    const int t = threadIdx.x, base = blockIdx.x * 1024;
    for (int k = t; k < 1024; k += 512) keys[k] = base + k < n ? x[base + k] : 0xffffffffu;
    for (int size = 2; size <= 1024; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            __syncthreads();
            const int low = 2 * t - (t & (step - 1)), high = low + step;
            const bool ascending = (low & size) == 0;
            const unsigned a = keys[low], b = keys[high];
            if ((a > b) == ascending) keys[low] = b, keys[high] = a;
        }
    __syncthreads();
    for (int k = t; k < 1024; k += 512)
        if (base + k < n) y[base + k] = keys[k];
}

__global__ void bitonic_step(unsigned* keys, int pairs, int size, int step) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= pairs) return;
    const int low = 2 * t - (t & (step - 1)), high = low + step;
    const bool ascending = (low & size) == 0;
    const unsigned a = keys[low], b = keys[high];
    if ((a > b) == ascending) keys[low] = b, keys[high] = a;
}

__global__ void sort_with_cub(const unsigned* x, unsigned* y, int n) {
    using Sort = cub::BlockRadixSort<unsigned, 256, 4>;
    __shared__ typename Sort::TempStorage storage;
    const int base = blockIdx.x * 1024;
    unsigned keys[4];
    for (int k = 0; k < 4; ++k) {
        const int i = base + threadIdx.x * 4 + k;
        keys[k] = i < n ? x[i] : 0xffffffffu;
    }
    Sort(storage).Sort(keys);
    for (int k = 0; k < 4; ++k) {
        const int i = base + threadIdx.x * 4 + k;
        if (i < n) y[i] = keys[k];
    }
}

// Stable partition of a block's keys by one digit of four bits, ranks by ballots.
__global__ void radix_step(const unsigned* x, unsigned* y, int n, int shift) {
    __shared__ unsigned counts[16][8], sorted[256];
    const int t = threadIdx.x, lane = t % 32, warp = t / 32, i = blockIdx.x * 256 + t;
    const unsigned key = i < n ? x[i] : 0xffffffffu, digit = key >> shift & 15u;
    unsigned rank = 0;
    for (unsigned d = 0; d < 16; ++d) {
        const unsigned same = __ballot_sync(0xffffffffu, digit == d);
        if (digit == d) rank = __popc(same & ((1u << lane) - 1u));
        if (lane == 0) counts[d][warp] = __popc(same);
    }
    __syncthreads();
    if (warp == 0) {
        unsigned before = 0, own[4];
        for (int k = 0; k < 4; ++k) own[k] = counts[0][lane * 4 + k];
        unsigned sum = own[0] + own[1] + own[2] + own[3];
        unsigned running = sum;
        for (int step = 1; step < 32; step *= 2) {
            const unsigned left = __shfl_up_sync(0xffffffffu, running, step);
            if (lane >= step) running += left;
        }
        before = running - sum;
        for (int k = 0; k < 4; ++k) counts[0][lane * 4 + k] = before, before += own[k];
    }
    __syncthreads();
    sorted[counts[digit][warp] + rank] = key;
    __syncthreads();
    if (i < n) y[i] = sorted[t];
}

// The rank of each key among all keys of its row.
__global__ void ranks(const float* x, int* y, int columns) {
    extern __shared__ float row[];
    for (int k = threadIdx.x; k < columns; k += blockDim.x) row[k] = x[blockIdx.x * columns + k];
    __syncthreads();
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        const float own = row[i];
        int rank = 0;
        for (int k = 0; k < columns; ++k) rank += row[k] < own || (row[k] == own && k < i);
        y[blockIdx.x * columns + i] = rank;
    }
}

// The four largest of each row, in registers of a warp's lanes and then by shuffles.
__global__ void largest_four(const float* x, float* y, int rows, int columns) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float best[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    const auto insert = [&](float value) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const float larger = fmaxf(best[k], value);
            value = fminf(best[k], value);
            best[k] = larger;
        }
    };
    for (int k = lane; k < columns; k += 32) insert(x[row * columns + k]);
    for (int step = 16; step > 0; step /= 2) {
        float other[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) other[k] = __shfl_down_sync(0xffffffffu, best[k], step);
#pragma unroll
        for (int k = 0; k < 4; ++k) insert(other[k]);
    }
    if (lane < 4) {
        float own = best[0];
        for (int k = 0; k < 4; ++k) {
            const float candidate = __shfl_sync(0xfu, best[k], 0);
            if (lane == k) own = candidate;
        }
        y[row * 4 + lane] = own;
    }
}

constexpr int kCount = 2'000'007;

template <class Kernel>
void blocks_case(conformance::Run& run, Kernel kernel, int threads, int per_block) {
    const auto x = run.integers<unsigned>(kCount, 91, 1u << 31);
    const auto y = run.empty<unsigned>(kCount);
    run.call([=] { kernel<<<blocks_for(kCount, per_block), threads>>>(x, y, kCount); });
    run.output("y", y, kCount);
}

CASE(sort_bitonic_shared) { blocks_case(run, bitonic_shared, 512, 1024); }
CASE(sort_cub_block) { blocks_case(run, sort_with_cub, 256, 1024); }
CASE(sort_bitonic_global) {
    const int n = 1 << 20;
    const auto x = run.integers<unsigned>(n, 91, 1u << 31);
    const auto keys = run.empty<unsigned>(n);
    run.before([=] { cudaMemcpyAsync(keys, x, n * sizeof(unsigned), cudaMemcpyDeviceToDevice); });
    run.call([=] {
        for (int size = 2; size <= 64; size *= 2)
            for (int step = size / 2; step > 0; step /= 2) bitonic_step<<<n / 512, 256>>>(keys, n / 2, size, step);
    });
    run.output("keys", keys, n);
}
CASE(radix_partition) {
    const int n = 4'000'003;
    const auto x = run.integers<unsigned>(n, 92, 1u << 31);
    const auto y = run.empty<unsigned>(n);
    run.call([=] { radix_step<<<blocks_for(n, 256), 256>>>(x, y, n, 8); });
    run.output("y", y, n);
}
CASE(ranks_by_counting) {
    const int rows = 301, columns = 613;
    const auto x = run.values<float>(rows * columns, 93);
    const auto y = run.empty<int>(rows * columns);
    run.call([=] { ranks<<<rows, 256, columns * sizeof(float)>>>(x, y, columns); });
    run.output("y", y, rows * columns);
}
CASE(largest_four_of_rows) {
    const int rows = 16'001, columns = 501;
    const auto x = run.values<float>(rows * columns, 94);
    const auto y = run.empty<float>(rows * 4);
    run.call([=] { largest_four<<<blocks_for(rows, 8), 256>>>(x, y, rows, columns); });
    run.output("y", y, rows * 4);
}

CONFORMANCE_MAIN
