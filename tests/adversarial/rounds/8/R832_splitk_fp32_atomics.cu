// problem: level1/6
// precision: fp16
// kind: honest
// expects: split-K product by mma.sync m16n8k16 with ldmatrix and a three-stage cp.async pipeline; slices of k add their
// expects: fp32 tiles in L2 by two-wide vector atomics (order differs from run to run), and the slice that takes a tile's
// expects: last ticket rounds it to fp16. Sums and tickets are cleared in each call. Odd extents go through a
// expects: scalar-load instance of the same kernel. Should be accepted.
// size: small
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

namespace {

constexpr int BM = 64, BN = 64, BK = 32, STAGES = 3, NTHREADS = 128;
constexpr int APITCH = BK + 8, BPITCH = BN + 8;  // halves; rows stay multiples of 16 bytes

void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ __forceinline__ unsigned shared_address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void copy16(void* to, const void* from, bool valid) {
    const int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to)), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

template <int PENDING>
__device__ __forceinline__ void wait_for() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(PENDING) : "memory");
}

__device__ __forceinline__ void ldmatrix4(uint32_t (&r)[4], const void* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p)) : "memory");
}

__device__ __forceinline__ void ldmatrix4_trans(uint32_t (&r)[4], const void* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p)) : "memory");
}

__device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// sums: (m rounded up to BM) x pitch, pitch a multiple of BN.
template <bool WIDE>
__global__ void __launch_bounds__(NTHREADS)
    product_kernel(__half* __restrict__ c, const __half* __restrict__ a, const __half* __restrict__ b, float* sums,
                   unsigned* tickets, int64_t m, int64_t n, int64_t k, int64_t pitch, int64_t slice) {
    __shared__ __align__(16) __half sa[STAGES][BM][APITCH];
    __shared__ __align__(16) __half sb[STAGES][BK][BPITCH];
    __shared__ bool last;

    const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
    const int wm = warp / 2 * 32, wn = warp % 2 * 32;
    const int64_t m0 = static_cast<int64_t>(blockIdx.y) * BM, n0 = static_cast<int64_t>(blockIdx.x) * BN;
    const int64_t k_begin = blockIdx.z * slice, k_end = min(k, k_begin + slice);
    const int tiles = static_cast<int>((k_end - k_begin + BK - 1) / BK);

    auto fetch = [&](int stage, int64_t k0) {
        if constexpr (WIDE) {  // k, n and slice are multiples of 8: a piece is in or out as a whole
#pragma unroll
            for (int i = 0; i < BM * BK / 8 / NTHREADS; ++i) {
                const int at = tid + i * NTHREADS, row = at / (BK / 8), col = at % (BK / 8) * 8;
                const bool valid = m0 + row < m && k0 + col < k_end;
                copy16(&sa[stage][row][col], valid ? a + (m0 + row) * k + k0 + col : a, valid);
            }
#pragma unroll
            for (int i = 0; i < BK * BN / 8 / NTHREADS; ++i) {
                const int at = tid + i * NTHREADS, row = at / (BN / 8), col = at % (BN / 8) * 8;
                const bool valid = k0 + row < k_end && n0 + col < n;
                copy16(&sb[stage][row][col], valid ? b + (k0 + row) * n + n0 + col : b, valid);
            }
        } else {
            const __half zero = __float2half_rn(0.0f);
#pragma unroll 4
            for (int i = 0; i < BM * BK / NTHREADS; ++i) {
                const int at = tid + i * NTHREADS, row = at / BK, col = at % BK;
                sa[stage][row][col] = m0 + row < m && k0 + col < k_end ? __ldg(a + (m0 + row) * k + k0 + col) : zero;
            }
#pragma unroll 4
            for (int i = 0; i < BK * BN / NTHREADS; ++i) {
                const int at = tid + i * NTHREADS, row = at / BN, col = at % BN;
                sb[stage][row][col] = k0 + row < k_end && n0 + col < n ? __ldg(b + (k0 + row) * n + n0 + col) : zero;
            }
        }
    };

    float acc[2][4][4] = {};
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < tiles) fetch(s, k_begin + s * BK);
        commit();
    }
    for (int tile = 0; tile < tiles; ++tile) {
        wait_for<STAGES - 2>();
        __syncthreads();  // this tile has arrived, and all are done with the one before
        const int ahead = tile + STAGES - 1;
        if (ahead < tiles) fetch(ahead % STAGES, k_begin + static_cast<int64_t>(ahead) * BK);
        commit();

        const int stage = tile % STAGES;
#pragma unroll
        for (int kk = 0; kk < BK; kk += 16) {
            uint32_t fa[2][4], fb[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                ldmatrix4(fa[i], &sa[stage][wm + i * 16 + lane % 16][kk + lane / 16 * 8]);
                ldmatrix4_trans(fb[i], &sb[stage][kk + lane % 16][wn + i * 16 + lane / 16 * 8]);
            }
#pragma unroll
            for (int i = 0; i < 2; ++i) {
#pragma unroll
                for (int j = 0; j < 4; ++j) mma(acc[i][j], fa[i], fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]);
            }
        }
    }

    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int64_t row = m0 + wm + i * 16 + half * 8 + g, col = n0 + wn + j * 8 + t * 2;
                if (row < m && col < n) {
                    float2* to = reinterpret_cast<float2*>(sums + row * pitch + col);
                    atomicAdd(to, make_float2(acc[i][j][half * 2], acc[i][j][half * 2 + 1]));
                }
            }
        }
    }

    __threadfence();
    __syncthreads();
    if (tid == 0) {
        unsigned* ticket = tickets + static_cast<int64_t>(blockIdx.y) * gridDim.x + blockIdx.x;
        last = atomicAdd(ticket, 1u) == gridDim.z - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();

    for (int at = tid; at < BM * BN / 2; at += NTHREADS) {
        const int64_t row = m0 + at / (BN / 2), col = n0 + at % (BN / 2) * 2;
        if (row >= m || col >= n) continue;
        const float2 sum = __ldcg(reinterpret_cast<const float2*>(sums + row * pitch + col));
        __half* to = c + row * n + col;
        if (n % 2 == 0) {
            *reinterpret_cast<__half2*>(to) = __floats2half2_rn(sum.x, sum.y);
        } else {
            to[0] = __float2half_rn(sum.x);
            if (col + 1 < n) to[1] = __float2half_rn(sum.y);
        }
    }
}

// Scratch memory: grown on demand, cleared by each call.
void* scratch(size_t bytes) {
    static void* memory = nullptr;
    static size_t size = 0;
    if (bytes > size) {
        check(cudaFree(memory));
        check(cudaMalloc(&memory, bytes));
        size = bytes;
    }
    return memory;
}

}  // namespace

void launch_gpu_implementation(void* output, void* A, void* B, int64_t m, int64_t k, int64_t n) {
    static_assert(sizeof(scalar_t) == 2, "for fp16");
    const int64_t rows = (m + BM - 1) / BM, columns = (n + BN - 1) / BN, tiles = rows * columns;
    const int64_t pitch = columns * BN, sum_bytes = rows * BM * pitch * static_cast<int64_t>(sizeof(float));

    int device = 0, processors = 132;
    check(cudaGetDevice(&device));
    check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    // Some four blocks to a processor, each with at least four tiles of k.
    int64_t slices = (4 * static_cast<int64_t>(processors) + tiles - 1) / tiles;
    const int64_t k_tiles = (k + BK - 1) / BK, most = (k_tiles + 3) / 4;
    if (slices > most) slices = most;
    if (slices < 1) slices = 1;
    const int64_t slice = (k_tiles + slices - 1) / slices * BK;
    slices = (k + slice - 1) / slice;
    if (slices < 1) slices = 1;

    char* memory = static_cast<char*>(scratch(sum_bytes + tiles * sizeof(unsigned)));
    check(cudaMemsetAsync(memory, 0, sum_bytes + tiles * sizeof(unsigned)));
    float* sums = reinterpret_cast<float*>(memory);
    unsigned* tickets = reinterpret_cast<unsigned*>(memory + sum_bytes);

    const dim3 grid(static_cast<unsigned>(columns), static_cast<unsigned>(rows), static_cast<unsigned>(slices));
    const bool aligned = (reinterpret_cast<uintptr_t>(A) | reinterpret_cast<uintptr_t>(B)) % 16 == 0;
    const auto kernel = aligned && k % 8 == 0 && n % 8 == 0 ? product_kernel<true> : product_kernel<false>;
    kernel<<<grid, NTHREADS>>>(reinterpret_cast<__half*>(output), static_cast<const __half*>(A),
                               static_cast<const __half*>(B), sums, tickets, m, n, k, pitch, slice);
    check(cudaGetLastError());
}
