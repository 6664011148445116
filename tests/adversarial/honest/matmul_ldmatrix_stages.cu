// problem: level1/1
// does: three stages of cp.async, ldmatrix with and without transposition, mma.sync, a swizzle against bank conflicts
// emulated: correct
// cuda: correct
// size: medium
#include <cuda_fp16.h>
#include <kernelblaster/scalar.cuh>

#include <type_traits>
static_assert(std::is_same_v<scalar_t, __half>, "written for fp16");

constexpr int BM = 64, BN = 64, BK = 32, STAGES = 3, THREADS = 128;
constexpr int A_ELEMENTS = BM * BK, B_ELEMENTS = BK * BN;

__device__ __forceinline__ unsigned smem(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// Chunks of 8 halves; the chunk's number is exchanged with bits of the row.
__device__ __forceinline__ int a_at(int row, int k) { return row * BK + (((k >> 3) ^ ((row >> 1) & 3)) << 3) + (k & 7); }
__device__ __forceinline__ int b_at(int k, int col) { return k * BN + (((col >> 3) ^ (k & 7)) << 3) + (col & 7); }

template <bool kAligned>
__device__ __forceinline__ void stage_in(__half* as, __half* bs, const __half* A, const __half* B, int64_t row0, int64_t col0,
                                         int64_t k0, int64_t n) {
    if constexpr (kAligned) {
        for (int c = threadIdx.x; c < A_ELEMENTS / 8; c += THREADS) {
            const int r = c / (BK / 8), k = c % (BK / 8) * 8;
            const bool in = row0 + r < n && k0 + k < n;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(smem(as + a_at(r, k))),
                         "l"(in ? A + (row0 + r) * n + k0 + k : A), "r"(in ? 16 : 0)
                         : "memory");
        }
        for (int c = threadIdx.x; c < B_ELEMENTS / 8; c += THREADS) {
            const int k = c / (BN / 8), col = c % (BN / 8) * 8;
            const bool in = k0 + k < n && col0 + col < n;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(smem(bs + b_at(k, col))),
                         "l"(in ? B + (k0 + k) * n + col0 + col : B), "r"(in ? 16 : 0)
                         : "memory");
        }
    } else {
        for (int e = threadIdx.x; e < A_ELEMENTS; e += THREADS) {
            const int r = e / BK, k = e % BK;
            as[a_at(r, k)] = row0 + r < n && k0 + k < n ? A[(row0 + r) * n + k0 + k] : __half(0.0f);
        }
        for (int e = threadIdx.x; e < B_ELEMENTS; e += THREADS) {
            const int k = e / BN, col = e % BN;
            bs[b_at(k, col)] = k0 + k < n && col0 + col < n ? B[(k0 + k) * n + col0 + col] : __half(0.0f);
        }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <bool kAligned>
__global__ __launch_bounds__(THREADS) void matmul(__half* C, const __half* A, const __half* B, int64_t n) {
    __shared__ __align__(16) __half as[STAGES][A_ELEMENTS], bs[STAGES][B_ELEMENTS];
    const int64_t row0 = int64_t(blockIdx.y) * BM, col0 = int64_t(blockIdx.x) * BN;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warp_row = warp / 2 * 32, warp_col = warp % 2 * 32;
    const int steps = int((n + BK - 1) / BK);
    float acc[2][4][4] = {};
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < steps) {
            stage_in<kAligned>(as[s], bs[s], A, B, row0, col0, int64_t(s) * BK, n);
        } else {
            asm volatile("cp.async.commit_group;" ::: "memory");
        }
    }
    for (int step = 0; step < steps; ++step) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        const int ahead = step + STAGES - 1;
        if (ahead < steps) {
            stage_in<kAligned>(as[ahead % STAGES], bs[ahead % STAGES], A, B, row0, col0, int64_t(ahead) * BK, n);
        } else {
            asm volatile("cp.async.commit_group;" ::: "memory");
        }
        const __half *a = as[step % STAGES], *b = bs[step % STAGES];
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            unsigned fa[2][4], fb[4][2];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int r = warp_row + i * 16 + lane % 16, kk = k + lane / 16 * 8;
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                             : "=r"(fa[i][0]), "=r"(fa[i][1]), "=r"(fa[i][2]), "=r"(fa[i][3])
                             : "r"(smem(a + a_at(r, kk))));
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int kk = k + lane % 16, c = warp_col + j * 8;
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                             : "=r"(fb[j][0]), "=r"(fb[j][1])
                             : "r"(smem(b + b_at(kk, c))));
            }
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    asm volatile(
                        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                        : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]), "+f"(acc[i][j][3])
                        : "r"(fa[i][0]), "r"(fa[i][1]), "r"(fa[i][2]), "r"(fa[i][3]), "r"(fb[j][0]), "r"(fb[j][1]));
        }
    }
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
            for (int e = 0; e < 4; ++e) {
                const int64_t r = row0 + warp_row + i * 16 + lane / 4 + e / 2 * 8;
                const int64_t c = col0 + warp_col + j * 8 + lane % 4 * 2 + e % 2;
                if (r < n && c < n) C[r * n + c] = __float2half(acc[i][j][e]);
            }
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    const dim3 grid(unsigned((n + BN - 1) / BN), unsigned((n + BM - 1) / BM));
    auto* c = static_cast<__half*>(output);
    const auto *a = static_cast<const __half*>(A), *b = static_cast<const __half*>(B);
    if (n % 8 == 0) {
        matmul<true><<<grid, THREADS>>>(c, a, b, n);
    } else {
        matmul<false><<<grid, THREADS>>>(c, a, b, n);
    }
}
