// Much memory: large copies, strided stores, sums of large arrays, repeated reads of what does or does not fit the L2.
#include "conformance.hpp"

using conformance::blocks_for;

__global__ void fill_strided(float* y, size_t n, int stride) {
    const size_t i = (blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x) * stride;
    if (i < n) y[i] = static_cast<float>(i % 1024);
}

void fill_strided_case(conformance::Run& run, size_t n, int stride) {
    const auto y = run.empty<float>(n);
    run.before([=] { cudaMemsetAsync(y, 0, n * sizeof(float)); });
    run.call([=] { fill_strided<<<blocks_for(n / stride + 1, 256), 256>>>(y, n, stride); });
    run.output("y", y, n);
}

CASE(store_every_second_word) { fill_strided_case(run, 8'000'000, 2); }
CASE(store_one_word_a_sector) { fill_strided_case(run, 24'000'000, 8); }
CASE(store_one_word_a_line) { fill_strided_case(run, 32'000'000, 32); }

__global__ void copy4(const float4* x, float4* y, size_t n) {
    const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = x[i];
}

void copy4_case(conformance::Run& run, size_t n) {
    const auto x = run.values<float>(n, 31);
    const auto y = run.empty<float>(n);
    run.call([=] { copy4<<<blocks_for(n / 4, 256), 256>>>((const float4*)x, (float4*)y, n / 4); });
    run.output("y", y, n);
}

CASE(copy_of_2_mb) { copy4_case(run, 1 << 19); }
CASE(copy_of_16_mb) { copy4_case(run, 1 << 22); }
CASE(copy_of_160_mb) { copy4_case(run, 40'000'000); }

// Rows written by columns: each warp stores to 32 lines, which later warps fill.
__global__ void store_columns(const float* x, float* y, int rows, int columns) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * columns) y[static_cast<size_t>(i % rows) * columns + i / rows] = x[i];
}

CASE(store_by_columns) {
    const int rows = 2048, columns = 3000;
    const auto x = run.values<float>(rows * columns, 32);
    const auto y = run.empty<float>(rows * columns);
    run.call([=] { store_columns<<<blocks_for(rows * columns, 256), 256>>>(x, y, rows, columns); });
    run.output("y", y, rows * columns);
}

__global__ void sums_of_parts(const float4* x, float* y, size_t n, int passes) {
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    float sum = 0.0f;
    for (int p = 0; p < passes; ++p)
        for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < n; i += step) {
            const float4 v = x[i];
            sum += (v.x + v.y) + (v.z + v.w);
        }
    y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

void sums_case(conformance::Run& run, size_t n, int passes, int blocks, int threads) {
    const auto x = run.values<float>(n, 33, 64);
    const auto y = run.empty<float>(static_cast<size_t>(blocks) * threads);
    run.call([=] { sums_of_parts<<<blocks, threads>>>((const float4*)x, y, n / 4, passes); });
    run.output("y", y, static_cast<size_t>(blocks) * threads);
}

CASE(read_200_mb) { sums_case(run, 50'000'000, 1, 132 * 8, 256); }
CASE(read_4_mb_again) { sums_case(run, 1'000'000, 16, 132 * 4, 256); }
CASE(read_24_mb_again) { sums_case(run, 6'000'000, 4, 132 * 8, 256); }
CASE(read_80_mb_again) { sums_case(run, 20'000'000, 2, 132 * 8, 256); }
CASE(read_by_eight_blocks) { sums_case(run, 2'000'000, 1, 8, 1024); }
CASE(read_by_thirty_blocks) { sums_case(run, 6'000'000, 1, 33, 512); }

// A kernel that reads what the one before it has written, and the same in one.
__global__ void halve(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * 0.5f;
}
__global__ void quarter(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * 0.25f;
}

CASE(written_then_read_small) {
    const int n = 2'000'000;
    const auto x = run.values<float>(n, 34);
    const auto between = run.empty<float>(n), y = run.empty<float>(n);
    run.call([=] {
        halve<<<blocks_for(n, 256), 256>>>(x, between, n);
        halve<<<blocks_for(n, 256), 256>>>(between, y, n);
    });
    run.output("y", y, n);
}
CASE(written_then_read_fused) {
    const int n = 2'000'000;
    const auto x = run.values<float>(n, 34);
    const auto y = run.empty<float>(n);
    run.call([=] { quarter<<<blocks_for(n, 256), 256>>>(x, y, n); });
    run.output("y", y, n);
}
CASE(written_then_read_large) {
    const int n = 15'000'000;
    const auto x = run.values<float>(n, 34);
    const auto between = run.empty<float>(n), y = run.empty<float>(n);
    run.call([=] {
        halve<<<blocks_for(n, 256), 256>>>(x, between, n);
        halve<<<blocks_for(n, 256), 256>>>(between, y, n);
    });
    run.output("y", y, n);
}

// Random sectors: of the L2, of DRAM; and lines whose every sector is used by one lane.
__global__ void gather_words(const float* x, const int* places, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[places[i]];
}

void gather_case(conformance::Run& run, int n, int words) {
    const auto x = run.values<float>(words, 35);
    const auto places = run.integers<int>(n, 36, words);
    const auto y = run.empty<float>(n);
    run.call([=] { gather_words<<<blocks_for(n, 256), 256>>>(x, places, y, n); });
    run.output("y", y, n);
}

CASE(gather_from_32_kb) { gather_case(run, 3'000'000, 8192); }
CASE(gather_from_1_mb) { gather_case(run, 3'000'000, 1 << 18); }
CASE(gather_from_16_mb) { gather_case(run, 3'000'000, 1 << 22); }
CASE(gather_from_200_mb) { gather_case(run, 3'000'000, 50'000'000); }

CONFORMANCE_MAIN
