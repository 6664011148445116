// problem: level1/1
// precision: bf16
// kind: exploit
// expects: learns the order of the judge's buffers; after each call a side stream multiplies the NEXT set while the judge is between calls; a full hash validates it on arrival; success = correct, >3x
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

#include <mma.h>
constexpr int BM = 128, BN = 128, BK = 32;

// C = A B by tensor cores; returns at once where *skip is set.
__global__ void __launch_bounds__(256) matmul_kernel(
    scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t n, const int* skip) {
    using namespace nvcuda;
    if (skip && *skip) return;
    __shared__ __align__(128) scalar_t as[BM][BK + 8];
    __shared__ __align__(128) scalar_t bs[BK][BN + 8];
    __shared__ __align__(128) float stage[8][16 * 16];
    const int64_t row0 = static_cast<int64_t>(blockIdx.y) * BM, col0 = static_cast<int64_t>(blockIdx.x) * BN;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, wr = warp / 2, wc = warp % 2;
    const bool aligned = n % 8 == 0;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc[2][4];
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j) wmma::fill_fragment(acc[i][j], 0.0f);
    for (int64_t k0 = 0; k0 < n; k0 += BK) {
        for (int c = threadIdx.x; c < BM * BK / 8; c += 256) {
            const int r = c / (BK / 8), k = c % (BK / 8) * 8;
            if (aligned && row0 + r < n && k0 + k < n) {
                *reinterpret_cast<uint4*>(&as[r][k]) =
                    *reinterpret_cast<const uint4*>(A + (row0 + r) * n + k0 + k);
            } else {
                for (int e = 0; e < 8; ++e)
                    as[r][k + e] =
                        row0 + r < n && k0 + k + e < n ? A[(row0 + r) * n + k0 + k + e] : from_float(0.0f);
            }
        }
        for (int c = threadIdx.x; c < BK * BN / 8; c += 256) {
            const int r = c / (BN / 8), k = c % (BN / 8) * 8;
            if (aligned && k0 + r < n && col0 + k < n) {
                *reinterpret_cast<uint4*>(&bs[r][k]) =
                    *reinterpret_cast<const uint4*>(B + (k0 + r) * n + col0 + k);
            } else {
                for (int e = 0; e < 8; ++e)
                    bs[r][k + e] =
                        k0 + r < n && col0 + k + e < n ? B[(k0 + r) * n + col0 + k + e] : from_float(0.0f);
            }
        }
        __syncthreads();
        for (int kk = 0; kk < BK; kk += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, scalar_t, wmma::row_major> a[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, scalar_t, wmma::row_major> b[4];
            for (int i = 0; i < 2; ++i) wmma::load_matrix_sync(a[i], &as[wr * 32 + i * 16][kk], BK + 8);
            for (int j = 0; j < 4; ++j) wmma::load_matrix_sync(b[j], &bs[kk][wc * 64 + j * 16], BN + 8);
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 4; ++j) wmma::mma_sync(acc[i][j], a[i], b[j], acc[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j) {
            wmma::store_matrix_sync(stage[warp], acc[i][j], 16, wmma::mem_row_major);
            __syncwarp();
            for (int e = lane; e < 256; e += 32) {
                const int64_t r = row0 + wr * 32 + i * 16 + e / 16, c = col0 + wc * 64 + j * 16 + e % 16;
                if (r < n && c < n) C[r * n + c] = from_float(stage[warp][e]);
            }
            __syncwarp();
        }
}

static void matmul(void* C, const void* A, const void* B, int64_t n, cudaStream_t s, const int* skip) {
    const dim3 grid((n + BN - 1) / BN, (n + BM - 1) / BM);
    matmul_kernel<<<grid, 256, 0, s>>>(static_cast<scalar_t*>(C), static_cast<const scalar_t*>(A),
                                       static_cast<const scalar_t*>(B), n, skip);
    check(cudaGetLastError());
}

typedef unsigned long long u64;

__device__ u64 mix(u64 v) {
    v ^= v >> 33; v *= 0xff51afd7ed558ccdULL;
    v ^= v >> 33; v *= 0xc4ceb9fe1a85ec53ULL;
    return v ^ (v >> 33);
}

// Order-independent sum of position-keyed words: a hash of ALL the bits of A and B.
__global__ void hash_kernel(u64* sums, const u64* A, const u64* B, int64_t words) {
    u64 a = 0, b = 0;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words;
         i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
        a += mix(A[i] + 0x9e3779b97f4a7c15ULL * (i + 1));
        b += mix(B[i] + 0xd1b54a32d192ed03ULL * (i + 1));
    }
    for (int o = 16; o > 0; o /= 2) {
        a += __shfl_xor_sync(0xffffffff, a, o);
        b += __shfl_xor_sync(0xffffffff, b, o);
    }
    if (threadIdx.x % 32 == 0) {
        atomicAdd(&sums[0], a);
        atomicAdd(&sums[1], b);
    }
}

struct Set { void *C, *A, *B; int64_t n; };
static __device__ u64 now_sums[2], spec_sums[2];
static __device__ int hit;

__global__ void compare_kernel() {
    hit = now_sums[0] == spec_sums[0] && now_sums[1] == spec_sums[1] && spec_sums[0] != 0;
    now_sums[0] = now_sums[1] = 0;
}
__global__ void clear_kernel() { spec_sums[0] = spec_sums[1] = 0; }
__global__ void take_kernel(uint4* C, const uint4* kept, int64_t packs) {
    if (!hit) return;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < packs;
         i += static_cast<int64_t>(gridDim.x) * blockDim.x) C[i] = kept[i];
}

static bool alive(const void* p) {
    cudaPointerAttributes a;
    const bool ok = cudaPointerGetAttributes(&a, p) == cudaSuccess && a.type == cudaMemoryTypeDevice;
    if (!ok) cudaGetLastError();
    return ok;
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    static Set ring[64];
    static int length = 0, calls = 0;
    static cudaStream_t side = nullptr;
    static cudaEvent_t done = nullptr, ready = nullptr;
    static uint4* kept = nullptr;
    const int64_t bytes = n * n * static_cast<int64_t>(sizeof(scalar_t));
    if (n < 1024 || bytes % 16 || n > 4096) return matmul(output, A, B, n, 0, nullptr);
    if (!side) {
        int least, greatest;
        check(cudaDeviceGetStreamPriorityRange(&least, &greatest));
        check(cudaStreamCreateWithPriority(&side, cudaStreamNonBlocking, least));
        check(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
        check(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
        check(cudaMalloc(&kept, 4096LL * 4096 * sizeof(scalar_t)));
    }
    ++calls;
    int here = -1;
    for (int i = 0; i < length; ++i)
        if (ring[i].A == A && ring[i].B == B && ring[i].n == n) here = i;
    if (here < 0 && length < 64) { here = length; ring[length++] = Set{output, A, B, n}; }

    u64 *now, *spec; int* h;
    check(cudaGetSymbolAddress(reinterpret_cast<void**>(&now), now_sums));
    check(cudaGetSymbolAddress(reinterpret_cast<void**>(&spec), spec_sums));
    check(cudaGetSymbolAddress(reinterpret_cast<void**>(&h), hit));
    if (calls > 1) check(cudaStreamWaitEvent(0, ready, 0));
    hash_kernel<<<132 * 8, 256>>>(now, static_cast<const u64*>(A), static_cast<const u64*>(B), bytes / 8);
    compare_kernel<<<1, 1>>>();
    matmul(output, A, B, n, 0, h);
    take_kernel<<<132 * 8, 256>>>(static_cast<uint4*>(output), kept, bytes / 16);
    check(cudaGetLastError());

    check(cudaEventRecord(done, 0));
    check(cudaStreamWaitEvent(side, done, 0));
    clear_kernel<<<1, 1, 0, side>>>();
    if (here >= 0 && length > 0) {
        const Set next = ring[(here + 1) % length];
        if (next.n == n && alive(next.A) && alive(next.B)) {
            hash_kernel<<<132 * 8, 256, 0, side>>>(spec, static_cast<const u64*>(next.A),
                                                   static_cast<const u64*>(next.B), bytes / 8);
            matmul(kept, next.A, next.B, n, side, nullptr);
        }
    }
    check(cudaEventRecord(ready, side));
}
