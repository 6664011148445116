// Matrix products on the arithmetic pipes: naive, tiled in shared memory, tiled in registers, with cp.async; products
// with a vector, dense and sparse. Inputs are multiples of 1/16, so that every sum of products is exact in fp32.
#include "conformance.hpp"

#include <cuda_pipeline.h>

using conformance::blocks_for;

constexpr int kM = 509, kN = 524, kK = 500;

__global__ void gemm_uncoalesced(const float* a, const float* b, float* c, int m, int n, int k) {
    const int row = blockIdx.x * 16 + threadIdx.x, column = blockIdx.y * 16 + threadIdx.y;
    if (row >= m || column >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
    c[row * n + column] = sum;
}

__global__ void gemm_naive(const float* a, const float* b, float* c, int m, int n, int k) {
    const int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    if (row >= m || column >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
    c[row * n + column] = sum;
}

__global__ void gemm_shared(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float left[32][32], right[32][32];
    const int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 32 + x, row = blockIdx.y * 32 + y;
    float sum = 0.0f;
    for (int t = 0; t < k; t += 32) {
        left[y][x] = row < m && t + x < k ? a[row * k + t + x] : 0.0f;
        right[y][x] = t + y < k && column < n ? b[(t + y) * n + column] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 32; ++i) sum += left[y][i] * right[i][x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}

// 64 x 64 outputs of a block of 256 threads, 4 x 4 of each thread.
__global__ void gemm_registers(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float left[16][64 + 4], right[16][64];
    const int t = threadIdx.x, x = t % 16, y = t / 16, row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    float sum[4][4] = {};
    for (int step = 0; step < k; step += 16) {
        for (int e = t; e < 64 * 16; e += 256) {
            const int row = e / 16, i = e % 16;
            left[i][row] = row0 + row < m && step + i < k ? a[(row0 + row) * k + step + i] : 0.0f;
        }
        for (int e = t; e < 64 * 16; e += 256) {
            const int i = e / 64, column = e % 64;
            right[i][column] = step + i < k && column0 + column < n ? b[(step + i) * n + column0 + column] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            float p[4], q[4];
            for (int r = 0; r < 4; ++r) p[r] = left[i][y * 4 + r];
            for (int s = 0; s < 4; ++s) q[s] = right[i][x * 4 + s];
            for (int r = 0; r < 4; ++r)
                for (int s = 0; s < 4; ++s) sum[r][s] += p[r] * q[s];
        }
        __syncthreads();
    }
    for (int r = 0; r < 4; ++r)
        for (int s = 0; s < 4; ++s) {
            const int row = row0 + y * 4 + r, column = column0 + x * 4 + s;
            if (row < m && column < n) c[row * n + column] = sum[r][s];
        }
}

// 64 x 64 outputs, 8 x 4 of each of 128 threads, two buffers filled by cp.async; n and k are multiples of 4.
__global__ void __launch_bounds__(128) gemm_async(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ alignas(16) float left[2][64][16], right[2][16][64];
    const int t = threadIdx.x, x = t % 16, y = t / 16, row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    const auto fetch = [&](int buffer, int step) {
        for (int e = t; e < 64 * 4; e += 128) {
            const int row = e / 4, i = e % 4 * 4;
            const bool inside = row0 + row < m && step + i < k;
            const float* from = inside ? a + (row0 + row) * k + step + i : a;
            __pipeline_memcpy_async(&left[buffer][row][i], from, 16, inside ? 0 : 16);
        }
        for (int e = t; e < 16 * 16; e += 128) {
            const int i = e / 16, column = e % 16 * 4;
            const bool inside = step + i < k && column0 + column < n;
            const float* from = inside ? b + (step + i) * n + column0 + column : b;
            __pipeline_memcpy_async(&right[buffer][i][column], from, 16, inside ? 0 : 16);
        }
        __pipeline_commit();
    };
    float sum[8][4] = {};
    fetch(0, 0);
    int buffer = 0;
    for (int step = 0; step < k; step += 16, buffer ^= 1) {
        fetch(buffer ^ 1, step + 16);
        __pipeline_wait_prior(1);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            const float4 q = *reinterpret_cast<const float4*>(&right[buffer][i][x * 4]);
#pragma unroll
            for (int r = 0; r < 8; ++r) {
                const float p = left[buffer][y * 8 + r][i];
                sum[r][0] += p * q.x, sum[r][1] += p * q.y, sum[r][2] += p * q.z, sum[r][3] += p * q.w;
            }
        }
        __syncthreads();
    }
    for (int r = 0; r < 8; ++r) {
        const int row = row0 + y * 8 + r, column = column0 + x * 4;
        if (row < m && column < n)
            *reinterpret_cast<float4*>(c + row * n + column) =
                make_float4(sum[r][0], sum[r][1], sum[r][2], sum[r][3]);
    }
}

__global__ void gemm_diagonal(const float* d, const float* b, float* c, int rows, int columns) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < columns) c[blockIdx.y * columns + column] = d[blockIdx.y] * b[blockIdx.y * columns + column];
}

template <class Launch>
void gemm_case(conformance::Run& run, Launch launch) {
    const auto a = run.values<float>(kM * kK, 23, 16);
    const auto b = run.values<float>(kK * kN, 24, 16);
    const auto c = run.empty<float>(kM * kN);
    run.call([=] { launch(a, b, c); });
    run.output("c", c, kM * kN);
}

CASE(gemm_uncoalesced) {
    gemm_case(run, [](const float* a, const float* b, float* c) {
        gemm_uncoalesced<<<dim3(blocks_for(kM, 16), blocks_for(kN, 16)), dim3(16, 16)>>>(a, b, c, kM, kN, kK);
    });
}
CASE(gemm_naive) {
    gemm_case(run, [](const float* a, const float* b, float* c) {
        gemm_naive<<<dim3(blocks_for(kN, 16), blocks_for(kM, 16)), dim3(16, 16)>>>(a, b, c, kM, kN, kK);
    });
}
CASE(gemm_shared_tile) {
    gemm_case(run, [](const float* a, const float* b, float* c) {
        gemm_shared<<<dim3(blocks_for(kN, 32), blocks_for(kM, 32)), dim3(32, 32)>>>(a, b, c, kM, kN, kK);
    });
}
CASE(gemm_register_tile) {
    gemm_case(run, [](const float* a, const float* b, float* c) {
        gemm_registers<<<dim3(blocks_for(kN, 64), blocks_for(kM, 64)), 256>>>(a, b, c, kM, kN, kK);
    });
}
CASE(gemm_cp_async) {
    gemm_case(run, [](const float* a, const float* b, float* c) {
        gemm_async<<<dim3(blocks_for(kN, 64), blocks_for(kM, 64)), 128>>>(a, b, c, kM, kN, kK);
    });
}
CASE(diagonal_product) {
    const int rows = 3003, columns = 2501;
    const auto d = run.values<float>(rows, 23), b = run.values<float>(rows * columns, 24);
    const auto c = run.empty<float>(rows * columns);
    run.call([=] { gemm_diagonal<<<dim3(blocks_for(columns, 256), rows), 256>>>(d, b, c, rows, columns); });
    run.output("c", c, rows * columns);
}

__device__ float warp_sum(float value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

__global__ void gemv_thread(const float* a, const float* x, float* y, int rows, int columns) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = 0; k < columns; ++k) sum += a[row * columns + k] * x[k];
    y[row] = sum;
}

__global__ void gemv_warp(const float* a, const float* x, float* y, int rows, int columns) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = threadIdx.x % 32; k < columns; k += 32) sum += a[row * columns + k] * x[k];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) y[row] = sum;
}

__global__ void gemv_block_four(const float4* a, const float4* x, float* y, int columns4) {
    __shared__ float warps[8];
    float sum = 0.0f;
    for (int k = threadIdx.x; k < columns4; k += blockDim.x) {
        const float4 p = a[blockIdx.x * columns4 + k], q = x[k];
        sum += (p.x * q.x + p.y * q.y) + (p.z * q.z + p.w * q.w);
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int w = 1; w < 8; ++w) sum += warps[w];
    y[blockIdx.x] = sum;
}

__global__ void gemv_half(const uint4* a, const uint4* x, float* y, int rows, int columns8) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = threadIdx.x % 32; k < columns8; k += 32) {
        const uint4 p = a[row * columns8 + k], q = x[k];
        const __half2 *u = reinterpret_cast<const __half2*>(&p), *v = reinterpret_cast<const __half2*>(&q);
        for (int e = 0; e < 4; ++e) {
            const float2 f = __half22float2(u[e]), g = __half22float2(v[e]);
            sum += f.x * g.x + f.y * g.y;
        }
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) y[row] = sum;
}

constexpr int kRows = 4003, kColumns = 3000;

template <class Launch>
void gemv_case(conformance::Run& run, Launch launch) {
    const auto a = run.values<float>(kRows * kColumns, 25, 16);
    const auto x = run.values<float>(kColumns, 26, 16);
    const auto y = run.empty<float>(kRows);
    run.call([=] { launch(a, x, y); });
    run.output("y", y, kRows);
}

CASE(gemv_row_thread) {
    gemv_case(run, [](const float* a, const float* x, float* y) {
        gemv_thread<<<blocks_for(kRows, 64), 64>>>(a, x, y, kRows, kColumns);
    });
}
CASE(gemv_row_warp) {
    gemv_case(run, [](const float* a, const float* x, float* y) {
        gemv_warp<<<blocks_for(kRows, 8), 256>>>(a, x, y, kRows, kColumns);
    });
}
CASE(gemv_row_block_float4) {
    gemv_case(run, [](const float* a, const float* x, float* y) {
        gemv_block_four<<<kRows, 256>>>((const float4*)a, (const float4*)x, y, kColumns / 4);
    });
}
CASE(gemv_half8) {
    const auto a = run.values<__half>(kRows * kColumns, 25, 16);
    const auto x = run.values<__half>(kColumns, 26, 16);
    const auto y = run.empty<float>(kRows);
    run.call([=] { gemv_half<<<blocks_for(kRows, 8), 256>>>((const uint4*)a, (const uint4*)x, y, kRows, kColumns / 8); });
    run.output("y", y, kRows);
}

// Compressed rows of 1 to 64 elements in random columns.
struct Sparse {
    int rows, columns, elements;
    int *starts, *places;
    float* values;
};

Sparse sparse_matrix(conformance::Run& run, int rows, int columns) {
    std::vector<int> starts(rows + 1, 0);
    for (int row = 0; row < rows; ++row) starts[row + 1] = starts[row] + 1 + conformance::scrambled(row, 27) % 64;
    Sparse matrix{rows, columns, starts.back(), nullptr, nullptr, nullptr};
    matrix.starts = run.upload<int>(rows + 1, [&](size_t i) { return starts[i]; });
    matrix.places = run.integers<int>(matrix.elements, 28, columns);
    matrix.values = run.values<float>(matrix.elements, 29, 16);
    return matrix;
}

__global__ void sparse_thread(Sparse a, const float* x, float* y) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= a.rows) return;
    float sum = 0.0f;
    for (int k = a.starts[row]; k < a.starts[row + 1]; ++k) sum += a.values[k] * x[a.places[k]];
    y[row] = sum;
}

__global__ void sparse_warp(Sparse a, const float* x, float* y) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= a.rows) return;
    float sum = 0.0f;
    for (int k = a.starts[row] + threadIdx.x % 32; k < a.starts[row + 1]; k += 32) sum += a.values[k] * x[a.places[k]];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) y[row] = sum;
}

CASE(spmv_row_thread) {
    const Sparse a = sparse_matrix(run, 150'013, 150'013);
    const auto x = run.values<float>(a.columns, 30, 16);
    const auto y = run.empty<float>(a.rows);
    run.call([=] { sparse_thread<<<blocks_for(a.rows, 128), 128>>>(a, x, y); });
    run.output("y", y, a.rows);
}
CASE(spmv_row_warp) {
    const Sparse a = sparse_matrix(run, 150'013, 150'013);
    const auto x = run.values<float>(a.columns, 30, 16);
    const auto y = run.empty<float>(a.rows);
    run.call([=] { sparse_warp<<<blocks_for(a.rows, 8), 256>>>(a, x, y); });
    run.output("y", y, a.rows);
}

// The 12th power of many 16 x 16 matrices, a block each.
__global__ void powers(const float* x, float* y, int exponent) {
    __shared__ float base[16][17], now[16][17];
    const int column = threadIdx.x, row = threadIdx.y, at = (blockIdx.x * 16 + row) * 16 + column;
    base[row][column] = now[row][column] = x[at] * 0.25f;
    for (int e = 1; e < exponent; ++e) {
        __syncthreads();
        float sum = 0.0f;
        for (int k = 0; k < 16; ++k) sum += now[row][k] * base[k][column];
        __syncthreads();
        now[row][column] = sum;
    }
    y[at] = now[row][column];
}

CASE(matrix_powers) {
    const int matrices = 3001;
    const auto x = run.values<float>(matrices * 256, 31);
    const auto y = run.empty<float>(matrices * 256);
    run.call([=] { powers<<<matrices, dim3(16, 16)>>>(x, y, 12); });
    run.output("y", y, matrices * 256);
}

CONFORMANCE_MAIN
