// Matrix products on the tensor cores: wmma, and mma.sync in f16, bf16, tf32 and s8. Inputs are multiples of 1/4, so that
// products and sums are exact and do not depend on how the hardware orders and rounds them.
#include "conformance.hpp"

#include <cuda_pipeline.h>
#include <mma.h>

using conformance::blocks_for;
namespace wmma = nvcuda::wmma;

// Multiples of 16, not of the block's tile.
constexpr int kM = 1200, kN = 1104, kK = 784;

// One tile of 16 x 16 outputs per warp, straight from global memory.
__global__ void wmma_global(const __half* a, const __half* b, float* c, int m, int n, int k) {
    const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, tiles = n / 16;
    if (warp >= m / 16 * tiles) return;
    const int row = warp / tiles * 16, column = warp % tiles * 16;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int i = 0; i < k; i += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
        wmma::load_matrix_sync(left, a + row * k + i, k);
        wmma::load_matrix_sync(right, b + i * n + column, n);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}

// 64 x 64 outputs of four warps; both operands pass through shared memory, two buffers filled by cp.async.
__global__ void __launch_bounds__(128) wmma_shared(const __half* a, const __half* b, float* c, int m, int n, int k) {
    __shared__ alignas(32) __half left[2][64][16 + 8], right[2][16][64 + 8];
    const int t = threadIdx.x, warp = t / 32, row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    const auto fetch = [&](int buffer, int step) {
        const int row = t / 2, i = t % 2 * 8, j = t / 8, column = t % 8 * 8;
        const bool inside_a = row0 + row < m && step < k, inside_b = step < k && column0 + column < n;
        __pipeline_memcpy_async(&left[buffer][row][i], inside_a ? a + (row0 + row) * k + step + i : a, 16,
                                inside_a ? 0 : 16);
        __pipeline_memcpy_async(&right[buffer][j][column], inside_b ? b + (step + j) * n + column0 + column : b, 16,
                                inside_b ? 0 : 16);
        __pipeline_commit();
    };
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[4];
    for (auto& one : sum) wmma::fill_fragment(one, 0.0f);
    fetch(0, 0);
    int buffer = 0;
    for (int step = 0; step < k; step += 16, buffer ^= 1) {
        fetch(buffer ^ 1, step + 16);
        __pipeline_wait_prior(1);
        __syncthreads();
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> p;
        wmma::load_matrix_sync(p, &left[buffer][warp * 16][0], 16 + 8);
        for (int s = 0; s < 4; ++s) {
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> q;
            wmma::load_matrix_sync(q, &right[buffer][0][s * 16], 64 + 8);
            wmma::mma_sync(sum[s], p, q, sum[s]);
        }
        __syncthreads();
    }
    for (int s = 0; s < 4; ++s) {
        const int row = row0 + warp * 16, column = column0 + s * 16;
        if (row < m && column < n) wmma::store_matrix_sync(c + row * n + column, sum[s], n, wmma::mem_row_major);
    }
}

__device__ unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// 64 x 64 outputs of four warps, 32 x 32 each, by ldmatrix and mma.m16n8k16.
template <class T>
__global__ void __launch_bounds__(128) mma_ldmatrix(const T* a, const T* b, float* c, int m, int n, int k) {
    __shared__ alignas(16) T left[64][32 + 8], right[32][64 + 8];
    const int t = threadIdx.x, lane = t % 32, warp = t / 32, row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    const int wr = warp / 2 * 32, wc = warp % 2 * 32;
    float sum[2][4][4] = {};
    for (int step = 0; step < k; step += 32) {
        for (int e = t; e < 64 * 4; e += 128) {
            const int row = e / 4, i = e % 4 * 8;
            const bool inside = row0 + row < m && step + i < k;
            *reinterpret_cast<uint4*>(&left[row][i]) =
                inside ? *reinterpret_cast<const uint4*>(a + (row0 + row) * k + step + i) : make_uint4(0, 0, 0, 0);
        }
        for (int e = t; e < 32 * 8; e += 128) {
            const int i = e / 8, column = e % 8 * 8;
            const bool inside = step + i < k && column0 + column < n;
            *reinterpret_cast<uint4*>(&right[i][column]) =
                inside ? *reinterpret_cast<const uint4*>(b + (step + i) * n + column0 + column) : make_uint4(0, 0, 0, 0);
        }
        __syncthreads();
        for (int i = 0; i < 32; i += 16) {
            unsigned p[2][4], q[4][2];
            for (int r = 0; r < 2; ++r) {
                const unsigned at = shared_address(&left[wr + r * 16 + lane % 16][i + lane / 16 * 8]);
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                             : "=r"(p[r][0]), "=r"(p[r][1]), "=r"(p[r][2]), "=r"(p[r][3]) : "r"(at));
            }
            for (int s = 0; s < 4; ++s) {
                const unsigned at = shared_address(&right[i + lane % 16][wc + s * 8]);
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                             : "=r"(q[s][0]), "=r"(q[s][1]) : "r"(at));
            }
            for (int r = 0; r < 2; ++r)
                for (int s = 0; s < 4; ++s) {
                    float* d = sum[r][s];
                    if constexpr (sizeof(T) == 2 && std::is_same<T, __half>::value)
                        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                                     "{%8,%9}, {%0,%1,%2,%3};"
                                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                                     : "r"(p[r][0]), "r"(p[r][1]), "r"(p[r][2]), "r"(p[r][3]), "r"(q[s][0]), "r"(q[s][1]));
                    else
                        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                                     "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                                     : "r"(p[r][0]), "r"(p[r][1]), "r"(p[r][2]), "r"(p[r][3]), "r"(q[s][0]), "r"(q[s][1]));
                }
        }
        __syncthreads();
    }
    for (int r = 0; r < 2; ++r)
        for (int s = 0; s < 4; ++s)
            for (int half = 0; half < 2; ++half) {
                const int row = row0 + wr + r * 16 + lane / 4 + half * 8, column = column0 + wc + s * 8 + lane % 4 * 2;
                if (row < m && column < n)
                    *reinterpret_cast<float2*>(c + row * n + column) =
                        make_float2(sum[r][s][2 * half], sum[r][s][2 * half + 1]);
            }
}

// One tile of 16 x 8 per warp and step, operands as the fragments ask for them.
__global__ void mma_tf32(const float* a, const float* b, float* c, int m, int n, int k) {
    const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32, tiles = n / 8;
    if (warp >= m / 16 * tiles) return;
    const int row = warp / tiles * 16 + lane / 4, column = warp % tiles * 8, q = lane % 4;
    float d[4] = {};
    for (int i = 0; i < k; i += 8) {
        const float a0 = a[row * k + i + q], a1 = a[(row + 8) * k + i + q];
        const float a2 = a[row * k + i + q + 4], a3 = a[(row + 8) * k + i + q + 4];
        const float b0 = b[(i + q) * n + column + lane / 4], b1 = b[(i + q + 4) * n + column + lane / 4];
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                     "{%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)),
                       "r"(__float_as_uint(a3)), "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
    }
    c[row * n + column + 2 * q] = d[0];
    c[row * n + column + 2 * q + 1] = d[1];
    c[(row + 8) * n + column + 2 * q] = d[2];
    c[(row + 8) * n + column + 2 * q + 1] = d[3];
}

// b is given transposed, so that four bytes along k are one word of a fragment.
__global__ void mma_s8(const int* a, const int* bt, int* c, int m, int n, int k) {
    const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32, tiles = n / 8;
    if (warp >= m / 16 * tiles) return;
    const int row = warp / tiles * 16 + lane / 4, column = warp % tiles * 8, q = lane % 4, words = k / 4;
    int d[4] = {};
    for (int i = 0; i < words; i += 8) {
        const int a0 = a[row * words + i + q], a1 = a[(row + 8) * words + i + q];
        const int a2 = a[row * words + i + q + 4], a3 = a[(row + 8) * words + i + q + 4];
        const int b0 = bt[(column + lane / 4) * words + i + q], b1 = bt[(column + lane / 4) * words + i + q + 4];
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                     "{%0,%1,%2,%3};"
                     : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    }
    c[row * n + column + 2 * q] = d[0];
    c[row * n + column + 2 * q + 1] = d[1];
    c[(row + 8) * n + column + 2 * q] = d[2];
    c[(row + 8) * n + column + 2 * q + 1] = d[3];
}

template <class T, class Launch>
void product_case(conformance::Run& run, Launch launch) {
    const auto a = run.values<T>(kM * kK, 33, 4);
    const auto b = run.values<T>(kK * kN, 34, 4);
    const auto c = run.empty<float>(kM * kN);
    run.call([=] { launch(a, b, c); });
    run.output("c", c, kM * kN);
}

constexpr int kWarpTiles = (kM / 16) * (kN / 16);
const dim3 kBlockTiles(blocks_for(kN, 64), blocks_for(kM, 64));

CASE(wmma_f16_global) {
    product_case<__half>(run, [](const __half* a, const __half* b, float* c) {
        wmma_global<<<blocks_for(kWarpTiles, 4), 128>>>(a, b, c, kM, kN, kK);
    });
}
CASE(wmma_f16_cp_async) {
    product_case<__half>(run, [](const __half* a, const __half* b, float* c) {
        wmma_shared<<<kBlockTiles, 128>>>(a, b, c, kM, kN, kK);
    });
}
CASE(mma_f16_ldmatrix) {
    product_case<__half>(run, [](const __half* a, const __half* b, float* c) {
        mma_ldmatrix<<<kBlockTiles, 128>>>(a, b, c, kM, kN, kK);
    });
}
CASE(mma_bf16_ldmatrix) {
    product_case<__nv_bfloat16>(run, [](const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
        mma_ldmatrix<<<kBlockTiles, 128>>>(a, b, c, kM, kN, kK);
    });
}
CASE(mma_tf32) {
    product_case<float>(run, [](const float* a, const float* b, float* c) {
        mma_tf32<<<blocks_for((kM / 16) * (kN / 8), 4), 128>>>(a, b, c, kM, kN, kK);
    });
}
CASE(mma_s8) {
    const int k = 1536;
    const auto a = run.integers<int>(kM * k / 4, 35, 1u << 31);
    const auto b = run.integers<int>(kN * k / 4, 36, 1u << 31);
    const auto c = run.empty<int>(kM * kN);
    run.call([=] { mma_s8<<<blocks_for((kM / 16) * (kN / 8), 4), 128>>>(a, b, c, kM, kN, k); });
    run.output("c", c, kM * kN);
}

CONFORMANCE_MAIN
