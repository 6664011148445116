// Sums in the ways they are written: trees in shared memory, shuffles, atomics, redux, cub, along rows and columns.
#include "conformance.hpp"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cub/block/block_reduce.cuh>

using conformance::blocks_for;
namespace cg = cooperative_groups;

constexpr int kCount = 12'000'011;

// Active threads are scattered over all warps.
__global__ void tree_interleaved(const float* x, float* partial, int n) {
    __shared__ float sum[256];
    const int t = threadIdx.x, i = blockIdx.x * 256 + t;
    sum[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int step = 1; step < 256; step *= 2) {
        if (t % (2 * step) == 0) sum[t] += sum[t + step];
        __syncthreads();
    }
    if (t == 0) partial[blockIdx.x] = sum[0];
}

// Active threads are neighbours, their words are not.
__global__ void tree_conflicting(const float* x, float* partial, int n) {
    __shared__ float sum[256];
    const int t = threadIdx.x, i = blockIdx.x * 256 + t;
    sum[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int step = 1; step < 256; step *= 2) {
        const int at = 2 * step * t;
        if (at < 256) sum[at] += sum[at + step];
        __syncthreads();
    }
    if (t == 0) partial[blockIdx.x] = sum[0];
}

__global__ void tree_sequential(const float* x, float* partial, int n) {
    __shared__ float sum[256];
    const int t = threadIdx.x, i = blockIdx.x * 256 + t;
    sum[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (t < step) sum[t] += sum[t + step];
        __syncthreads();
    }
    if (t == 0) partial[blockIdx.x] = sum[0];
}

__device__ float warp_sum(float value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

__device__ float block_sum(float value) {
    __shared__ float warps[32];
    value = warp_sum(value);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : 0.0f;
    return threadIdx.x < 32 ? warp_sum(value) : 0.0f;
}

__global__ void shuffle_one(const float* x, float* partial, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float sum = block_sum(i < n ? x[i] : 0.0f);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void shuffle_four_strides(const float4* x, float* partial, int n4) {
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += gridDim.x * blockDim.x) {
        const float4 part = x[i];
        sum += (part.x + part.y) + (part.z + part.w);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void atomic_per_thread(const float* x, float* total, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(total, x[i]);
}

__global__ void atomic_per_block(const float* x, float* total, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float sum = block_sum(i < n ? x[i] : 0.0f);
    if (threadIdx.x == 0) atomicAdd(total, sum);
}

__global__ void redux_per_warp(const unsigned* x, unsigned* sums, unsigned* most, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned value = i < n ? x[i] : 0u;
    const unsigned sum = __reduce_add_sync(0xffffffffu, value), largest = __reduce_max_sync(0xffffffffu, value);
    if (threadIdx.x % 32 == 0) {
        sums[i / 32] = sum;
        most[i / 32] = largest;
    }
}

__global__ void shuffles_per_warp(const unsigned* x, unsigned* sums, unsigned* most, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned value = i < n ? x[i] : 0u;
    unsigned sum = value, largest = value;
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
        largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, step));
    }
    if (threadIdx.x % 32 == 0) {
        sums[i / 32] = sum;
        most[i / 32] = largest;
    }
}

__global__ void with_cub(const float* x, float* partial, int n) {
    using Reduce = cub::BlockReduce<float, 256>;
    __shared__ typename Reduce::TempStorage storage;
    float items[4];
    for (int k = 0; k < 4; ++k) {
        const int i = blockIdx.x * 1024 + k * 256 + threadIdx.x;
        items[k] = i < n ? x[i] : 0.0f;
    }
    const float sum = Reduce(storage).Sum(items);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void with_tiles(const float* x, float* partial, int n) {
    const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float sum = cg::reduce(tile, i < n ? x[i] : 0.0f, cg::plus<float>());
    if (tile.thread_rank() == 0) partial[i / 16] = sum;
}

__global__ void row_per_thread(const float* x, float* sums, int rows, int columns) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = 0; k < columns; ++k) sum += x[row * columns + k];
    sums[row] = sum;
}

__global__ void row_per_warp(const float* x, float* sums, int rows, int columns) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = threadIdx.x % 32; k < columns; k += 32) sum += x[row * columns + k];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) sums[row] = sum;
}

__global__ void row_per_block(const float* x, float* sums, int columns) {
    float sum = 0.0f;
    for (int k = threadIdx.x; k < columns; k += blockDim.x) sum += x[blockIdx.x * columns + k];
    sum = block_sum(sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void column_per_thread(const float* x, float* sums, int rows, int columns) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns) return;
    float sum = 0.0f;
    for (int k = 0; k < rows; ++k) sum += x[k * columns + column];
    sums[column] = sum;
}

// Blocks share a column; each adds its part with one atomic per thread.
__global__ void column_parts(const float* x, float* sums, int rows, int columns, int part) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns) return;
    const int begin = blockIdx.y * part, end = min(begin + part, rows);
    float sum = 0.0f;
    for (int k = begin; k < end; ++k) sum += x[k * columns + column];
    atomicAdd(sums + column, sum);
}

__global__ void largest_of_rows(const float* x, int* where, int columns) {
    __shared__ float values[8];
    __shared__ int places[8];
    float best = -INFINITY;
    int at = 0;
    for (int k = threadIdx.x; k < columns; k += blockDim.x) {
        const float value = x[blockIdx.x * columns + k];
        if (value > best) best = value, at = k;
    }
    for (int step = 16; step > 0; step /= 2) {
        const float other = __shfl_down_sync(0xffffffffu, best, step);
        const int place = __shfl_down_sync(0xffffffffu, at, step);
        if (other > best || (other == best && place < at)) best = other, at = place;
    }
    if (threadIdx.x % 32 == 0) values[threadIdx.x / 32] = best, places[threadIdx.x / 32] = at;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int w = 1; w < 8; ++w)
        if (values[w] > best || (values[w] == best && places[w] < at)) best = values[w], at = places[w];
    where[blockIdx.x] = at;
}

template <class Kernel>
void partial_case(conformance::Run& run, Kernel kernel, int per_block) {
    const unsigned blocks = blocks_for(kCount, per_block);
    const auto x = run.values<float>(kCount, 5);
    const auto partial = run.empty<float>(blocks);
    run.call([=] { kernel<<<blocks, 256>>>(x, partial, kCount); });
    run.output("partial", partial, blocks);
}

CASE(sum_tree_interleaved) { partial_case(run, tree_interleaved, 256); }
CASE(sum_tree_conflicting) { partial_case(run, tree_conflicting, 256); }
CASE(sum_tree_sequential) { partial_case(run, tree_sequential, 256); }
CASE(sum_shuffle) { partial_case(run, shuffle_one, 256); }
CASE(sum_cub_block) { partial_case(run, with_cub, 1024); }

CASE(sum_shuffle_float4) {
    const int blocks = 132 * 4, n4 = kCount / 4;
    const auto x = run.values<float>(4 * n4, 5);
    const auto partial = run.empty<float>(blocks);
    run.call([=] { shuffle_four_strides<<<blocks, 512>>>((const float4*)x, partial, n4); });
    run.output("partial", partial, blocks);
}

CASE(sum_two_passes) {
    const int blocks = 132 * 4, n4 = kCount / 4;
    const auto x = run.values<float>(4 * n4, 5);
    const auto partial = run.empty<float>(blocks);
    const auto total = run.empty<float>(1);
    run.call([=] {
        shuffle_four_strides<<<blocks, 512>>>((const float4*)x, partial, n4);
        shuffle_four_strides<<<1, 512>>>((const float4*)partial, total, blocks / 4);
    });
    run.output("total", total, 1);
}

// Sums of multiples of 1/1024 are exact, so their order does not matter.
CASE(sum_atomic_per_thread) {
    const int n = 1'000'007;
    const auto x = run.values<float>(n, 5);
    const auto total = run.empty<float>(1);
    run.before([=] { cudaMemsetAsync(total, 0, sizeof(float)); });
    run.call([=] { atomic_per_thread<<<blocks_for(n, 256), 256>>>(x, total, n); });
    run.output("total", total, 1);
}

CASE(sum_atomic_per_block) {
    const int n = 1'000'007;
    const auto x = run.values<float>(n, 5);
    const auto total = run.empty<float>(1);
    run.before([=] { cudaMemsetAsync(total, 0, sizeof(float)); });
    run.call([=] { atomic_per_block<<<blocks_for(n, 256), 256>>>(x, total, n); });
    run.output("total", total, 1);
}

template <class Kernel>
void warp_case(conformance::Run& run, Kernel kernel) {
    const unsigned blocks = blocks_for(kCount, 256);
    const auto x = run.integers<unsigned>(kCount, 7, 1u << 30);
    const auto sums = run.empty<unsigned>(blocks * 8);
    const auto most = run.empty<unsigned>(blocks * 8);
    run.call([=] { kernel<<<blocks, 256>>>(x, sums, most, kCount); });
    run.output("sums", sums, blocks * 8);
    run.output("most", most, blocks * 8);
}

CASE(warp_sum_redux) { warp_case(run, redux_per_warp); }
CASE(warp_sum_shuffles) { warp_case(run, shuffles_per_warp); }

CASE(sum_cooperative_tiles) {
    const unsigned blocks = blocks_for(kCount, 256);
    const auto x = run.values<float>(kCount, 5);
    const auto partial = run.empty<float>(blocks * 16);
    run.call([=] { with_tiles<<<blocks, 256>>>(x, partial, kCount); });
    run.output("partial", partial, blocks * 16);
}

constexpr int kRows = 4099, kColumns = 2999;

CASE(row_sum_thread) {
    const auto x = run.values<float>(kRows * kColumns, 9);
    const auto sums = run.empty<float>(kRows);
    run.call([=] { row_per_thread<<<blocks_for(kRows, 64), 64>>>(x, sums, kRows, kColumns); });
    run.output("sums", sums, kRows);
}
CASE(row_sum_warp) {
    const auto x = run.values<float>(kRows * kColumns, 9);
    const auto sums = run.empty<float>(kRows);
    run.call([=] { row_per_warp<<<blocks_for(kRows, 8), 256>>>(x, sums, kRows, kColumns); });
    run.output("sums", sums, kRows);
}
CASE(row_sum_block) {
    const auto x = run.values<float>(kRows * kColumns, 9);
    const auto sums = run.empty<float>(kRows);
    run.call([=] { row_per_block<<<kRows, 256>>>(x, sums, kColumns); });
    run.output("sums", sums, kRows);
}
CASE(column_sum_thread) {
    const auto x = run.values<float>(kRows * kColumns, 9);
    const auto sums = run.empty<float>(kColumns);
    run.call([=] { column_per_thread<<<blocks_for(kColumns, 128), 128>>>(x, sums, kRows, kColumns); });
    run.output("sums", sums, kColumns);
}
CASE(column_sum_parts) {
    const int part = 50;
    const auto x = run.values<float>(kRows * kColumns, 9);
    const auto sums = run.empty<float>(kColumns);
    run.before([=] { cudaMemsetAsync(sums, 0, kColumns * sizeof(float)); });
    run.call([=] {
        column_parts<<<dim3(blocks_for(kColumns, 128), blocks_for(kRows, part)), 128>>>(x, sums, kRows, kColumns, part);
    });
    run.output("sums", sums, kColumns);
}
CASE(row_argmax) {
    const auto x = run.values<float>(kRows * kColumns, 9);
    const auto where = run.empty<int>(kRows);
    run.call([=] { largest_of_rows<<<kRows, 256>>>(x, where, kColumns); });
    run.output("where", where, kRows);
}

CONFORMANCE_MAIN
