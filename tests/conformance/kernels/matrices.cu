// Products of small and middle-sized matrices: one output per thread, tiles, registers, halves, batches, fused ends.
// Sums of products are exact in fp32 (inputs are multiples of 1/64), so that outputs agree in any order.
#include "conformance.hpp"

#include <mma.h>

using conformance::blocks_for;

constexpr int kSteps = 64;

__global__ void product_rows(const float* a, const float* b, float* c, int m, int n, int k) {
    const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    if (row >= m || column >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
    c[row * n + column] = sum;
}

// The right matrix is given with its columns as rows, and neighbouring lanes walk along different rows of it.
__global__ void product_transposed(const float* a, const float* b, float* c, int m, int n, int k) {
    const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    if (row >= m || column >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[column * k + i];
    c[row * n + column] = sum;
}

template <int Tile>
__global__ void product_tiles(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float left[Tile][Tile], right[Tile][Tile];
    const int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * Tile + ty, column = blockIdx.x * Tile + tx;
    float sum = 0.0f;
    for (int begin = 0; begin < k; begin += Tile) {
        left[ty][tx] = row < m && begin + tx < k ? a[row * k + begin + tx] : 0.0f;
        right[ty][tx] = begin + ty < k && column < n ? b[(begin + ty) * n + column] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < Tile; ++i) sum += left[ty][i] * right[i][tx];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}

// 256 threads, 64 x 64 outputs, 4 x 4 of them per thread, loaded as wide words. Sizes are multiples of the tiles.
__global__ void __launch_bounds__(256) product_registers(const float* a, const float* b, float* c, int n, int k) {
    __shared__ float left[16][68], right[16][64];
    const int t = threadIdx.x, tx = t % 16, ty = t / 16, row = blockIdx.y * 64, column = blockIdx.x * 64;
    float sums[4][4] = {};
    for (int begin = 0; begin < k; begin += 16) {
        const float4 own = *reinterpret_cast<const float4*>(a + (row + t / 4) * k + begin + t % 4 * 4);
        left[t % 4 * 4 + 0][t / 4] = own.x, left[t % 4 * 4 + 1][t / 4] = own.y;
        left[t % 4 * 4 + 2][t / 4] = own.z, left[t % 4 * 4 + 3][t / 4] = own.w;
        *reinterpret_cast<float4*>(&right[ty][tx * 4]) = *reinterpret_cast<const float4*>(b + (begin + ty) * n + column + tx * 4);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            const float4 u = *reinterpret_cast<float4*>(&left[i][ty * 4]), v = *reinterpret_cast<float4*>(&right[i][tx * 4]);
            const float us[4] = {u.x, u.y, u.z, u.w}, vs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int r = 0; r < 4; ++r)
#pragma unroll
                for (int s = 0; s < 4; ++s) sums[r][s] = fmaf(us[r], vs[s], sums[r][s]);
        }
        __syncthreads();
    }
    for (int r = 0; r < 4; ++r)
        *reinterpret_cast<float4*>(c + (row + ty * 4 + r) * n + column + tx * 4) =
            make_float4(sums[r][0], sums[r][1], sums[r][2], sums[r][3]);
}

using Product = void (*)(const float*, const float*, float*, int, int, int);

void product_case(conformance::Run& run, Product product, dim3 tile, int m, int n, int k) {
    const auto a = run.values<float>(m * k, 71, kSteps), b = run.values<float>(k * n, 72, kSteps), c = run.empty<float>(m * n);
    run.call([=] { product<<<dim3(blocks_for(n, tile.x), blocks_for(m, tile.y)), tile>>>(a, b, c, m, n, k); });
    run.output("c", c, m * n);
}
void registers_case(conformance::Run& run, int m, int n, int k) {
    const auto a = run.values<float>(m * k, 71, kSteps), b = run.values<float>(k * n, 72, kSteps), c = run.empty<float>(m * n);
    run.call([=] { product_registers<<<dim3(n / 64, m / 64), 256>>>(a, b, c, n, k); });
    run.output("c", c, m * n);
}

CASE(matmul_512_rows) { product_case(run, product_rows, dim3(32, 8), 512, 512, 512); }
CASE(matmul_512_transposed) { product_case(run, product_transposed, dim3(32, 8), 512, 512, 512); }
CASE(matmul_512_tile_16) { product_case(run, product_tiles<16>, dim3(16, 16), 512, 512, 512); }
CASE(matmul_512_tile_32) { product_case(run, product_tiles<32>, dim3(32, 32), 512, 512, 512); }
CASE(matmul_512_registers) { registers_case(run, 512, 512, 512); }
CASE(matmul_768_registers) { registers_case(run, 768, 768, 768); }
CASE(matmul_tall_rows) { product_case(run, product_rows, dim3(32, 8), 8000, 33, 300); }
CASE(matmul_tall_tile_16) { product_case(run, product_tiles<16>, dim3(16, 16), 8000, 33, 300); }
CASE(matmul_long_sum_tile_32) { product_case(run, product_tiles<32>, dim3(32, 32), 64, 64, 8000); }

// A long inner extent, dealt out to blocks that add their parts to the outputs.
__global__ void product_parts(const float* a, const float* b, float* c, int m, int n, int k, int each) {
    __shared__ float left[32][33], right[32][32];
    const int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 32 + ty, column = blockIdx.x * 32 + tx;
    const int first = blockIdx.z * each, end = min(k, first + each);
    float sum = 0.0f;
    for (int begin = first; begin < end; begin += 32) {
        left[ty][tx] = begin + tx < end ? a[row * k + begin + tx] : 0.0f;
        right[ty][tx] = begin + ty < end ? b[(begin + ty) * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 32; ++i) sum += left[ty][i] * right[i][tx];
        __syncthreads();
    }
    atomicAdd(c + row * n + column, sum);
}

CASE(matmul_long_sum_parts) {
    const int m = 64, n = 64, k = 8000, parts = 50;
    const auto a = run.values<float>(m * k, 71, kSteps), b = run.values<float>(k * n, 72, kSteps), c = run.empty<float>(m * n);
    run.before([=] { cudaMemsetAsync(c, 0, m * n * sizeof(float)); });
    run.call([=] { product_parts<<<dim3(n / 32, m / 32, parts), dim3(32, 32)>>>(a, b, c, m, n, k, k / parts); });
    run.output("c", c, m * n);
}

// Half precision, summed in pairs of halves as fp32; and by tensor cores with tiles in shared memory.
__global__ void product_half2(const __half2* a, const __half2* b, __half* c, int m, int n, int k2) {
    const int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    if (row >= m || column >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < k2; ++i) {
        const float2 u = __half22float2(a[row * k2 + i]), v = __half22float2(b[column * k2 + i]);
        sum += u.x * v.x + u.y * v.y;
    }
    c[row * n + column] = __float2half(sum);
}
__global__ void __launch_bounds__(128) product_wmma_shared(const __half* a, const __half* b, __half* c, int n, int k) {
    namespace wmma = nvcuda::wmma;
    __shared__ __align__(32) __half left[64][40], right[64][40];
    __shared__ __align__(32) float parts[4][32][36];
    const int t = threadIdx.x, warp = t / 32, row = blockIdx.y * 64, column = blockIdx.x * 64;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[2][2];
    for (auto& line : sums)
        for (auto& one : line) wmma::fill_fragment(one, 0.0f);
    for (int begin = 0; begin < k; begin += 32) {
        for (int e = t; e < 256; e += 128) {
            const int r = e / 4, s = e % 4 * 8;
            *reinterpret_cast<uint4*>(&left[r][s]) = *reinterpret_cast<const uint4*>(a + (row + r) * k + begin + s);
            *reinterpret_cast<uint4*>(&right[r][s]) = *reinterpret_cast<const uint4*>(b + (column + r) * k + begin + s);
        }
        __syncthreads();
        for (int i = 0; i < 32; i += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> u[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> v[2];
            for (int p = 0; p < 2; ++p) {
                wmma::load_matrix_sync(u[p], &left[warp / 2 * 32 + p * 16][i], 40);
                wmma::load_matrix_sync(v[p], &right[warp % 2 * 32 + p * 16][i], 40);
            }
            for (int p = 0; p < 2; ++p)
                for (int q = 0; q < 2; ++q) wmma::mma_sync(sums[p][q], u[p], v[q], sums[p][q]);
        }
        __syncthreads();
    }
    for (int p = 0; p < 2; ++p)
        for (int q = 0; q < 2; ++q) wmma::store_matrix_sync(&parts[warp][p * 16][q * 16], sums[p][q], 36, wmma::mem_row_major);
    __syncwarp();
    for (int r = 0; r < 32; ++r)
        c[(row + warp / 2 * 32 + r) * n + column + warp % 2 * 32 + t % 32] = __float2half(parts[warp][r][t % 32]);
}

CASE(matmul_half2_dots) {
    const int m = 500, n = 500, k = 512;
    const auto a = run.values<__half>(m * k, 73, kSteps), b = run.values<__half>(n * k, 74, kSteps), c = run.empty<__half>(m * n);
    run.call([=] {
        product_half2<<<dim3(blocks_for(n, 16), blocks_for(m, 16)), dim3(16, 16)>>>((const __half2*)a, (const __half2*)b, c, m, n, k / 2);
    });
    run.output("c", c, m * n, 1);
}
CASE(matmul_wmma_shared) {
    const int m = 1024, n = 1024, k = 1024;
    const auto a = run.values<__half>(m * k, 73, kSteps), b = run.values<__half>(n * k, 74, kSteps), c = run.empty<__half>(m * n);
    run.call([=] { product_wmma_shared<<<dim3(n / 64, m / 64), 128>>>(a, b, c, n, k); });
    run.output("c", c, m * n, 1);
}

// 3,000 products of 24 x 24 matrices: a thread per output from memory, or a block per product from shared memory.
__global__ void batch_direct(const float* a, const float* b, float* c, int count, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count * n * n) return;
    const int one = i / (n * n), row = i / n % n, column = i % n;
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) sum += a[one * n * n + row * n + k] * b[one * n * n + k * n + column];
    c[i] = sum;
}
__global__ void batch_shared(const float* a, const float* b, float* c) {
    __shared__ float left[24 * 24], right[24 * 24];
    const size_t base = blockIdx.x * size_t{576};
    for (int e = threadIdx.x; e < 576; e += 192) left[e] = a[base + e], right[e] = b[base + e];
    __syncthreads();
    for (int e = threadIdx.x; e < 576; e += 192) {
        const int row = e / 24, column = e % 24;
        float sum = 0.0f;
#pragma unroll
        for (int k = 0; k < 24; ++k) sum += left[row * 24 + k] * right[k * 24 + column];
        c[base + e] = sum;
    }
}

CASE(batched_24_direct) {
    const int count = 3000, n = 24;
    const auto a = run.values<float>(count * n * n, 75, kSteps), b = run.values<float>(count * n * n, 76, kSteps);
    const auto c = run.empty<float>(count * n * n);
    run.call([=] { batch_direct<<<blocks_for(count * n * n, 256), 256>>>(a, b, c, count, n); });
    run.output("c", c, count * n * n);
}
CASE(batched_24_shared) {
    const int count = 3000, n = 24;
    const auto a = run.values<float>(count * n * n, 75, kSteps), b = run.values<float>(count * n * n, 76, kSteps);
    const auto c = run.empty<float>(count * n * n);
    run.call([=] { batch_shared<<<count, 192>>>(a, b, c); });
    run.output("c", c, count * n * n);
}

// Matrix times vector for each of a batch: a thread per row, or a warp with wide words.
__global__ void matvec_thread(const float* a, const float* x, float* y, int rows, int columns) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const size_t base = (static_cast<size_t>(blockIdx.y) * rows + row) * columns;
    float sum = 0.0f;
    for (int k = 0; k < columns; ++k) sum += a[base + k] * x[blockIdx.y * columns + k];
    y[blockIdx.y * rows + row] = sum;
}
__global__ void matvec_warp(const float4* a, const float4* x, float* y, int rows, int columns4) {
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    const size_t base = (static_cast<size_t>(blockIdx.y) * rows + row) * columns4;
    float sum = 0.0f;
    for (int k = lane; k < columns4; k += 32) {
        const float4 u = a[base + k], v = x[blockIdx.y * columns4 + k];
        sum += (u.x * v.x + u.y * v.y) + (u.z * v.z + u.w * v.w);
    }
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) y[blockIdx.y * rows + row] = sum;
}

void matvec_case(conformance::Run& run, bool by_warp) {
    const int batch = 12, rows = 700, columns = 600;
    const auto a = run.values<float>(batch * rows * columns, 77, kSteps), x = run.values<float>(batch * columns, 78, kSteps);
    const auto y = run.empty<float>(batch * rows);
    if (by_warp)
        run.call([=] { matvec_warp<<<dim3(blocks_for(rows, 8), batch), 256>>>((const float4*)a, (const float4*)x, y, rows, columns / 4); });
    else run.call([=] { matvec_thread<<<dim3(blocks_for(rows, 64), batch), 64>>>(a, x, y, rows, columns); });
    run.output("y", y, batch * rows);
}

CASE(batched_matvec_thread) { matvec_case(run, false); }
CASE(batched_matvec_warp) { matvec_case(run, true); }

// relu(x w + bias) with the end fused, or in two launches.
__global__ void bias_relu(float* c, const float* bias, int m, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < m * n) c[i] = fmaxf(c[i] + bias[i % n], 0.0f);
}
__global__ void linear_relu(const float* a, const float* b, const float* bias, float* c, int m, int n, int k) {
    __shared__ float left[16][17], right[16][16];
    const int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    float sum = column < n ? bias[column] : 0.0f;
    for (int begin = 0; begin < k; begin += 16) {
        left[ty][tx] = row < m && begin + tx < k ? a[row * k + begin + tx] : 0.0f;
        right[ty][tx] = begin + ty < k && column < n ? b[(begin + ty) * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += left[ty][i] * right[i][tx];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = fmaxf(sum, 0.0f);
}

CASE(linear_relu_apart) {
    const int m = 1000, n = 500, k = 100;
    const auto a = run.values<float>(m * k, 79, kSteps), b = run.values<float>(k * n, 80, kSteps), bias = run.values<float>(n, 81, kSteps);
    const auto c = run.empty<float>(m * n);
    run.call([=] {
        product_rows<<<dim3(blocks_for(n, 32), blocks_for(m, 8)), dim3(32, 8)>>>(a, b, c, m, n, k);
        bias_relu<<<blocks_for(m * n, 256), 256>>>(c, bias, m, n);
    });
    run.output("c", c, m * n);
}
CASE(linear_relu_fused) {
    const int m = 1000, n = 500, k = 100;
    const auto a = run.values<float>(m * k, 79, kSteps), b = run.values<float>(k * n, 80, kSteps), bias = run.values<float>(n, 81, kSteps);
    const auto c = run.empty<float>(m * n);
    run.call([=] { linear_relu<<<dim3(blocks_for(n, 16), blocks_for(m, 16)), dim3(16, 16)>>>(a, b, bias, c, m, n, k); });
    run.output("c", c, m * n);
}

// Only what is not above the diagonal counts.
__global__ void product_triangular(const float* a, const float* b, float* c, int n) {
    const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    if (row >= n || column >= n) return;
    float sum = 0.0f;
    for (int i = column; i <= row; ++i) sum += a[row * n + i] * b[i * n + column];
    c[row * n + column] = sum;
}
__global__ void outer(const float* x, const float* y, float* c, int m, int n) {
    const int column = blockIdx.x * 256 + threadIdx.x;
    if (column < n) c[static_cast<size_t>(blockIdx.y) * n + column] = x[blockIdx.y] * y[column];
}

CASE(matmul_triangular) {
    const int n = 600;
    const auto a = run.values<float>(n * n, 82, kSteps), b = run.values<float>(n * n, 83, kSteps), c = run.empty<float>(n * n);
    run.call([=] { product_triangular<<<dim3(blocks_for(n, 32), blocks_for(n, 8)), dim3(32, 8)>>>(a, b, c, n); });
    run.output("c", c, n * n);
}
CASE(outer_product) {
    const int m = 2000, n = 3001;
    const auto x = run.values<float>(m, 84), y = run.values<float>(n, 85), c = run.empty<float>(m * n);
    run.call([=] { outer<<<dim3(blocks_for(n, 256), m), 256>>>(x, y, c, m, n); });
    run.output("c", c, m * n);
}

CONFORMANCE_MAIN
