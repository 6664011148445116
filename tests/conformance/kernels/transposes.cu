// Transposes: the side that is not coalesced, bank conflicts of a tile, and two ways out of them.
#include "conformance.hpp"

using conformance::blocks_for;

constexpr int kRows = 3011, kColumns = 2777;

__global__ void writes_strided(const float* x, float* y, int rows, int columns) {
    const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    if (row < rows && column < columns) y[column * rows + row] = x[row * columns + column];
}

__global__ void reads_strided(const float* x, float* y, int rows, int columns) {
    const int row = blockIdx.x * 32 + threadIdx.x, column = blockIdx.y * 8 + threadIdx.y;
    if (row < rows && column < columns) y[column * rows + row] = x[row * columns + column];
}

template <int Padding>
__global__ void through_tile(const float* x, float* y, int rows, int columns) {
    __shared__ float tile[32][32 + Padding];
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (row + k < rows && column < columns) tile[threadIdx.y + k][threadIdx.x] = x[(row + k) * columns + column];
    __syncthreads();
    column = blockIdx.x * 32 + threadIdx.y;
    row = blockIdx.y * 32 + threadIdx.x;
    for (int k = 0; k < 32; k += 8)
        if (row < rows && column + k < columns) y[(column + k) * rows + row] = tile[threadIdx.x][threadIdx.y + k];
}

__global__ void through_swizzled_tile(const float* x, float* y, int rows, int columns) {
    __shared__ float tile[32][32];
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) {
        const int at = threadIdx.y + k;
        if (row + k < rows && column < columns) tile[at][threadIdx.x ^ at] = x[(row + k) * columns + column];
    }
    __syncthreads();
    column = blockIdx.x * 32 + threadIdx.y;
    row = blockIdx.y * 32 + threadIdx.x;
    for (int k = 0; k < 32; k += 8)
        if (row < rows && column + k < columns)
            y[(column + k) * rows + row] = tile[threadIdx.x][(threadIdx.y + k) ^ threadIdx.x];
}

// Pairs of halves move as words, so that a warp writes 128 bytes of a row.
__global__ void half_pairs(const __half2* x, __half2* y, int rows, int columns) {
    __shared__ __half tile[64][66];
    const int pairs = columns / 2;
    const int pair = blockIdx.x * 32 + threadIdx.x;
    for (int k = threadIdx.y; k < 64; k += 8) {
        const int row = blockIdx.y * 64 + k;
        if (row < rows && pair < pairs)
            *reinterpret_cast<__half2*>(&tile[k][2 * threadIdx.x]) = x[static_cast<size_t>(row) * pairs + pair];
    }
    __syncthreads();
    const int row_pair = blockIdx.y * 32 + threadIdx.x;
    for (int k = threadIdx.y; k < 64; k += 8) {
        const int column = blockIdx.x * 64 + k;
        if (column < columns && row_pair < rows / 2)
            y[static_cast<size_t>(column) * (rows / 2) + row_pair] =
                __halves2half2(tile[2 * threadIdx.x][k], tile[2 * threadIdx.x + 1][k]);
    }
}

template <class Kernel>
void transpose_case(conformance::Run& run, Kernel kernel, dim3 grid) {
    const auto x = run.values<float>(kRows * kColumns, 3);
    const auto y = run.empty<float>(kRows * kColumns);
    run.call([=] { kernel<<<grid, dim3(32, 8)>>>(x, y, kRows, kColumns); });
    run.output("y", y, kRows * kColumns);
}

CASE(transpose_strided_writes) {
    transpose_case(run, writes_strided, dim3(blocks_for(kColumns, 32), blocks_for(kRows, 8)));
}
CASE(transpose_strided_reads) {
    transpose_case(run, reads_strided, dim3(blocks_for(kRows, 32), blocks_for(kColumns, 8)));
}
CASE(transpose_conflicts) {
    transpose_case(run, through_tile<0>, dim3(blocks_for(kColumns, 32), blocks_for(kRows, 32)));
}
CASE(transpose_padded) {
    transpose_case(run, through_tile<1>, dim3(blocks_for(kColumns, 32), blocks_for(kRows, 32)));
}
CASE(transpose_swizzled) {
    transpose_case(run, through_swizzled_tile, dim3(blocks_for(kColumns, 32), blocks_for(kRows, 32)));
}
CASE(transpose_half_pairs) {
    const int rows = 4010, columns = 3778;
    const auto x = run.values<__half>(rows * columns, 3);
    const auto y = run.empty<__half>(rows * columns);
    run.call([=] {
        half_pairs<<<dim3(blocks_for(columns, 64), blocks_for(rows, 64)), dim3(32, 8)>>>((const __half2*)x, (__half2*)y,
                                                                                       rows, columns);
    });
    run.output("y", y, rows * columns);
}

CONFORMANCE_MAIN
