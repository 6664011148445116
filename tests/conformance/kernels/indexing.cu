// Addresses that come from memory: gather, scatter, rows of a table, pointer chasing, searching.
#include "conformance.hpp"

using conformance::blocks_for;

constexpr int kCount = 4'000'037;

// i -> a permutation of [0, n): multiplication by a number without common factors with n.
__host__ __device__ inline int shuffled(int i, int n) {
    return static_cast<int>((static_cast<unsigned long long>(i) * 1'000'003ull + 12345ull) % static_cast<unsigned>(n));
}

__global__ void gather(const float* x, const int* places, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[places[i]];
}

__global__ void scatter(const float* x, const int* places, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[places[i]] = x[i];
}

__global__ void scatter_add(const float* x, const int* places, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(y + places[i], x[i]);
}

__global__ void table_rows(const float* table, const int* rows, float* y, int count, int width) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count * width) y[i] = table[rows[i / width] * width + i % width];
}

__global__ void table_rows_four(const float4* table, const int* rows, float4* y, int count, int width4) {
    const int item = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (item >= count) return;
    const int row = rows[item];
    for (int k = lane; k < width4; k += 32) y[item * width4 + k] = table[row * width4 + k];
}

__global__ void chase(const int* next, int* ends, int steps, int starts) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= starts) return;
    int at = i * 97;
    for (int k = 0; k < steps; ++k) at = next[at];
    ends[i] = at;
}

__global__ void search(const int* sorted, const int* wanted, int* found, int size, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int low = 0, high = size;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (sorted[middle] < wanted[i])
            low = middle + 1;
        else
            high = middle;
    }
    found[i] = low;
}

template <class Kernel>
void places_case(conformance::Run& run, Kernel kernel, bool random) {
    const int n = kCount;
    const auto x = run.values<float>(n, 51);
    const auto places = run.upload<int>(n, [=](size_t i) { return random ? shuffled(static_cast<int>(i), n) : static_cast<int>(i ^ 1) % n; });
    const auto y = run.empty<float>(n);
    run.before([=] { cudaMemsetAsync(y, 0, n * sizeof(float)); });
    run.call([=] { kernel<<<blocks_for(n, 256), 256>>>(x, places, y, n); });
    run.output("y", y, n);
}

CASE(gather_random) { places_case(run, gather, true); }
CASE(gather_neighbours) { places_case(run, gather, false); }
CASE(scatter_random) { places_case(run, scatter, true); }
CASE(scatter_neighbours) { places_case(run, scatter, false); }
// Each place gets few summands, all multiples of 1/1024: the order does not show.
CASE(scatter_add_random) {
    const int n = 2'000'011, places_count = 150'021;
    const auto x = run.values<float>(n, 51);
    const auto places = run.integers<int>(n, 52, places_count);
    const auto y = run.empty<float>(places_count);
    run.before([=] { cudaMemsetAsync(y, 0, places_count * sizeof(float)); });
    run.call([=] { scatter_add<<<blocks_for(n, 256), 256>>>(x, places, y, n); });
    run.output("y", y, places_count);
}
CASE(embedding_scalar) {
    const int table = 20'011, width = 100, count = 90'007;
    const auto x = run.values<float>(table * width, 53);
    const auto rows = run.integers<int>(count, 54, table);
    const auto y = run.empty<float>(count * width);
    run.call([=] { table_rows<<<blocks_for(count * width, 256), 256>>>(x, rows, y, count, width); });
    run.output("y", y, count * width);
}
CASE(embedding_warp_float4) {
    const int table = 20'011, width = 100, count = 90'007;
    const auto x = run.values<float>(table * width, 53);
    const auto rows = run.integers<int>(count, 54, table);
    const auto y = run.empty<float>(count * width);
    run.call([=] {
        table_rows_four<<<blocks_for(count, 8), 256>>>((const float4*)x, rows, (float4*)y, count, width / 4);
    });
    run.output("y", y, count * width);
}
CASE(pointer_chasing_dram) {
    const int n = 8'000'009, starts = 1'037;
    const auto next = run.upload<int>(n, [=](size_t i) { return shuffled(static_cast<int>(i), n); });
    const auto ends = run.empty<int>(starts);
    run.call([=] { chase<<<blocks_for(starts, 32), 32>>>(next, ends, 64, starts); });
    run.output("ends", ends, starts);
}
CASE(pointer_chasing_l1) {
    const int n = 3'001, starts = 29;
    const auto next = run.upload<int>(n, [=](size_t i) { return shuffled(static_cast<int>(i), n); });
    const auto ends = run.empty<int>(starts);
    run.call([=] { chase<<<1, 32>>>(next, ends, 1000, starts); });
    run.output("ends", ends, starts);
}
CASE(binary_search) {
    const int size = 300'007, n = 1'600'009;
    const auto sorted = run.upload<int>(size, [](size_t i) { return static_cast<int>(7 * i); });
    const auto wanted = run.integers<int>(n, 55, 7 * size);
    const auto found = run.empty<int>(n);
    run.call([=] { search<<<blocks_for(n, 256), 256>>>(sorted, wanted, found, size, n); });
    run.output("found", found, n);
}

CONFORMANCE_MAIN
