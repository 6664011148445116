// KernelBlaster: level3/001, fp16, size medium
// measured speed-up over the start 47.413x (95 %: 47.176 to 47.543), 5754.83 us -> 121.38 us per call, cold L2
// device: NVIDIA H200 (sm_90)
// Three linear layers with a rectifier between each two. With few rows the weights are the traffic: each layer is one
// launch in which a producer warp streams 128-byte-swizzled tiles with TMA through an mbarrier ring, two warpgroups run
// wgmma on them, and the blocks of a cluster share K and add their sums through distributed shared memory. A layer
// fetches its first weights while the layer before it drains; a block that has issued its last load also pulls the first
// weights of the next layer into L2, so that DRAM works through the drain, the sums and the launch. Tile width (64, 128,
// 256) and cluster size (1 to 4) are chosen by what the device runs at a time. Rows that TMA cannot describe go through
// WMMA.
#include <kernelblaster/scalar.cuh>

#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

// ------------------------------------------------------------------------------------------ WMMA path (any shape)
constexpr int FT = 64, FK = 32, FLD = FK + 8, FCLD = FT + 4;

__global__ void __launch_bounds__(128) linear_wmma(
    __half* __restrict__ output, const __half* __restrict__ x, const __half* __restrict__ weight,
    const __half* __restrict__ bias, int64_t M, int64_t N, int64_t K, int relu) {
    using namespace nvcuda;
    __shared__ __align__(128) __half a_tile[FT * FLD];
    __shared__ __align__(128) __half b_tile[FT * FLD];
    __shared__ __align__(128) float c_tile[FT * FCLD];
    const int tid = threadIdx.x;
    const int warp = tid >> 5;
    const int wm = (warp >> 1) * 32, wn = (warp & 1) * 32;
    const int64_t m0 = static_cast<int64_t>(blockIdx.y) * FT;
    const int64_t n0 = static_cast<int64_t>(blockIdx.x) * FT;

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc[2][2];
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) wmma::fill_fragment(acc[i][j], 0.0f);

    const int kk = tid & 31;
    for (int64_t k0 = 0; k0 < K; k0 += FK) {
        const bool k_ok = k0 + kk < K;
#pragma unroll 4
        for (int r = tid >> 5; r < FT; r += 4) {
            a_tile[r * FLD + kk] = k_ok && m0 + r < M ? x[(m0 + r) * K + k0 + kk] : __float2half(0.0f);
            b_tile[r * FLD + kk] = k_ok && n0 + r < N ? weight[(n0 + r) * K + k0 + kk] : __float2half(0.0f);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < FK; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb[2];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                wmma::load_matrix_sync(fa[i], a_tile + (wm + i * 16) * FLD + k, FLD);
                wmma::load_matrix_sync(fb[i], b_tile + (wn + i * 16) * FLD + k, FLD);
            }
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 2; ++j) wmma::mma_sync(acc[i][j], fa[i], fb[j], acc[i][j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j)
            wmma::store_matrix_sync(c_tile + (wm + i * 16) * FCLD + wn + j * 16, acc[i][j], FCLD,
                                    wmma::mem_row_major);
    __syncthreads();
    for (int e = tid; e < FT * FT; e += 128) {
        const int r = e / FT, c = e % FT;
        if (m0 + r < M && n0 + c < N) {
            const float v = c_tile[r * FCLD + c] + __half2float(bias[n0 + c]);
            output[(m0 + r) * N + n0 + c] = __float2half_rn(relu ? fmaxf(v, 0.0f) : v);
        }
    }
}

// ------------------------------------------------------------------------------------------ TMA + wgmma path
constexpr int BM = 128, BK = 64;
constexpr int A_BYTES = BM * BK * 2;
constexpr int THREADS = 288;  // 8 consumer warps and 1 producer warp

template <int BN>
struct Tile {
    static constexpr int kStages = BN == 256 ? 4 : (BN == 128 ? 6 : 8);
    static constexpr int kStageBytes = A_BYTES + BN * BK * 2;
    static constexpr int kSmem = kStages * kStageBytes + 1024;
};

__device__ __forceinline__ uint64_t make_desc(uint32_t addr) {
    return static_cast<uint64_t>((addr & 0x3FFFF) >> 4) | (static_cast<uint64_t>(1) << 16) |
           (static_cast<uint64_t>(64) << 32) | (static_cast<uint64_t>(1) << 62);
}

__device__ __forceinline__ void mbar_init(uint32_t bar, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void mbar_expect(uint32_t bar, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(bar), "r"(bytes) : "memory");
}

__device__ __forceinline__ void mbar_arrive(uint32_t bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(bar) : "memory");
}

__device__ __forceinline__ void mbar_wait(uint32_t bar, uint32_t parity) {
    uint32_t done = 0;
    while (!done) {
        asm volatile(
            "{\n"
            ".reg .pred p;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n"
            "}\n"
            : "=r"(done)
            : "r"(bar), "r"(parity)
            : "memory");
    }
}

__device__ __forceinline__ void tma_load(uint32_t dst, const CUtensorMap* map, int c0, int c1, uint32_t bar) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];\n" ::"r"(
            dst),
        "l"(reinterpret_cast<uint64_t>(map)), "r"(bar), "r"(c0), "r"(c1)
        : "memory");
}

__device__ __forceinline__ void tma_prefetch(const CUtensorMap* map, int c0, int c1) {
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];\n" ::"l"(reinterpret_cast<uint64_t>(map)),
                 "r"(c0), "r"(c1)
                 : "memory");
}

// The weights that the next layer asks for first: `depth` K tiles of each of its units (0 units: no next layer).
struct NextLayer {
    int units, splits, kt_per_split, kt_all, bn, depth;
};

__device__ __forceinline__ void cluster_sync_all() {
    asm volatile("barrier.cluster.arrive.release;\n" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;\n" ::: "memory");
}

__device__ __forceinline__ uint32_t map_to_cta(uint32_t addr, uint32_t cta) {
    uint32_t remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(remote) : "r"(addr), "r"(cta));
    return remote;
}

__device__ __forceinline__ float4 load_cluster(uint32_t addr) {
    float4 v;
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];\n"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(addr)
                 : "memory");
    return v;
}

#define F8(i) \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
        "+f"(d[i + 7])

__device__ __forceinline__ void wgmma_k16(float (&d)[128], uint64_t desc_a, uint64_t desc_b) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %130, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, "
        "%24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, "
        "%40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, "
        "%56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, "
        "%72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, "
        "%88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, "
        "%104, %105, %106, %107, %108, %109, %110, %111, "
        "%112, %113, %114, %115, %116, %117, %118, %119, "
        "%120, %121, %122, %123, %124, %125, %126, %127}, "
        "%128, %129, p, 1, 1, 0, 0;\n"
        "}\n"
        : F8(0), F8(8), F8(16), F8(24), F8(32), F8(40), F8(48), F8(56), F8(64), F8(72), F8(80), F8(88), F8(96),
          F8(104), F8(112), F8(120)
        : "l"(desc_a), "l"(desc_b), "r"(1));
}

__device__ __forceinline__ void wgmma_k16(float (&d)[64], uint64_t desc_a, uint64_t desc_b) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, "
        "%24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, "
        "%40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, "
        "%56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, p, 1, 1, 0, 0;\n"
        "}\n"
        : F8(0), F8(8), F8(16), F8(24), F8(32), F8(40), F8(48), F8(56)
        : "l"(desc_a), "l"(desc_b), "r"(1));
}

__device__ __forceinline__ void wgmma_k16(float (&d)[32], uint64_t desc_a, uint64_t desc_b) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, "
        "%24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33, p, 1, 1, 0, 0;\n"
        "}\n"
        : F8(0), F8(8), F8(16), F8(24)
        : "l"(desc_a), "l"(desc_b), "r"(1));
}

template <int BN>
__global__ void __launch_bounds__(THREADS, 1) linear_tma(
    const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
    const __grid_constant__ CUtensorMap map_next, const NextLayer next,
    __half* __restrict__ output, const __half* __restrict__ bias, int M, int N, int K, int m_tiles, int splits,
    int kt_per_split, int relu, int vector_out) {
    constexpr int STAGES = Tile<BN>::kStages;
    constexpr int STAGE = Tile<BN>::kStageBytes;
    constexpr int SUM_STRIDE = BN + 8;  // floats
    extern __shared__ unsigned char smem_raw[];
    __shared__ __align__(8) uint64_t full_bars[STAGES];
    __shared__ __align__(8) uint64_t empty_bars[STAGES];
    const uint32_t raw = static_cast<uint32_t>(__cvta_generic_to_shared(smem_raw));
    const uint32_t pad = (1024u - (raw & 1023u)) & 1023u;
    const uint32_t smem = raw + pad;
    unsigned char* smem_ptr = smem_raw + pad;
    const uint32_t full0 = static_cast<uint32_t>(__cvta_generic_to_shared(full_bars));
    const uint32_t empty0 = static_cast<uint32_t>(__cvta_generic_to_shared(empty_bars));

    asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory");

    const int tid = threadIdx.x;
    const int lane = tid & 31;
    const int warp = tid >> 5;
    const int rank = static_cast<int>(blockIdx.x) % splits;  // also the rank in the cluster
    const int tile = static_cast<int>(blockIdx.x) / splits;
    const int m0 = (tile % m_tiles) * BM;
    const int n0 = (tile / m_tiles) * BN;

    const int kt_all = (K + BK - 1) / BK;
    const int kt_begin = rank * kt_per_split;
    const int kt_left = kt_all - kt_begin;
    const int KT = kt_left < kt_per_split ? (kt_left < 0 ? 0 : kt_left) : kt_per_split;

    if (tid == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mbar_init(full0 + 8 * s, 1);
            mbar_init(empty0 + 8 * s, 8);
        }
        asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
        asm volatile("fence.proxy.async;\n" ::: "memory");
    }
    __syncthreads();

    float* sums = reinterpret_cast<float*>(smem_ptr);
    if (warp == 8) {
        if (lane == 0) {
            const int head = KT < STAGES ? KT : STAGES;
            // The weights do not depend on the layer before; its output does.
            for (int kt = 0; kt < head; ++kt) {
                mbar_expect(full0 + 8 * kt, STAGE);
                tma_load(smem + kt * STAGE + A_BYTES, &map_b, (kt_begin + kt) * BK, n0, full0 + 8 * kt);
            }
            asm volatile("griddepcontrol.wait;\n" ::: "memory");
            for (int kt = 0; kt < head; ++kt)
                tma_load(smem + kt * STAGE, &map_a, (kt_begin + kt) * BK, m0, full0 + 8 * kt);
            int s = 0;
            uint32_t parity = 0;
            for (int kt = head; kt < KT; ++kt) {
                mbar_wait(empty0 + 8 * s, parity);
                const uint32_t bar = full0 + 8 * s;
                mbar_expect(bar, STAGE);
                tma_load(smem + s * STAGE + A_BYTES, &map_b, (kt_begin + kt) * BK, n0, bar);
                tma_load(smem + s * STAGE, &map_a, (kt_begin + kt) * BK, m0, bar);
                if (++s == STAGES) {
                    s = 0;
                    parity ^= 1;
                }
            }
            // This block asks DRAM for nothing more: start on the next layer.
            for (int u = static_cast<int>(blockIdx.x); u < next.units; u += static_cast<int>(gridDim.x)) {
                const int first = (u % next.splits) * next.kt_per_split;
                const int row = (u / next.splits) * next.bn;
                for (int i = 0; i < next.depth && i < next.kt_per_split && first + i < next.kt_all; ++i)
                    tma_prefetch(&map_next, (first + i) * BK, row);
            }
        }
        __syncwarp();
    } else {
        const int wg = warp >> 2;
        float acc[BN / 2];
#pragma unroll
        for (int i = 0; i < BN / 2; ++i) acc[i] = 0.0f;
        int s = 0, last = 0;
        uint32_t parity = 0;
        for (int kt = 0; kt < KT; ++kt) {
            mbar_wait(full0 + 8 * s, parity);
            const uint32_t base = smem + s * STAGE;
            const uint64_t desc_a = make_desc(base + wg * (64 * 128));
            const uint64_t desc_b = make_desc(base + A_BYTES);
            asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#pragma unroll
            for (int j = 0; j < BK / 16; ++j) wgmma_k16(acc, desc_a + 2 * j, desc_b + 2 * j);
            asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
            asm volatile("wgmma.wait_group.sync.aligned 1;\n" ::: "memory");
            if (kt > 0 && lane == 0) mbar_arrive(empty0 + 8 * last);
            __syncwarp();
            last = s;
            if (++s == STAGES) {
                s = 0;
                parity ^= 1;
            }
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
        // Every tile has arrived and been read by both warpgroups: the stages are free for the sums.
        asm volatile("bar.sync 1, 256;\n" ::: "memory");
        float* mine = sums + (warp * 16 + (lane >> 2)) * SUM_STRIDE + (lane & 3) * 2;
#pragma unroll
        for (int j = 0; j < BN / 8; ++j) {
            *reinterpret_cast<float2*>(mine + j * 8) = make_float2(acc[4 * j], acc[4 * j + 1]);
            *reinterpret_cast<float2*>(mine + 8 * SUM_STRIDE + j * 8) = make_float2(acc[4 * j + 2], acc[4 * j + 3]);
        }
        __syncwarp();
    }
    cluster_sync_all();

    // block `rank` of the cluster adds and stores its share of the rows
    const int row_begin = rank * BM / splits;
    const int row_count = (rank + 1) * BM / splits - row_begin;
    for (int item = tid; item < row_count * (BN / 8); item += THREADS) {
        const int row = row_begin + item / (BN / 8);
        const int c = (item % (BN / 8)) * 8;
        const int m = m0 + row;
        const int n = n0 + c;
        if (m < M && n < N) {
            const uint32_t local = smem + static_cast<uint32_t>((row * SUM_STRIDE + c) * 4);
            float v[8];
#pragma unroll
            for (int i = 0; i < 8; ++i) v[i] = n + i < N ? __half2float(bias[n + i]) : 0.0f;
            for (int s = 0; s < splits; ++s) {
                const uint32_t remote = map_to_cta(local, static_cast<uint32_t>(s));
                const float4 lo = load_cluster(remote);
                const float4 hi = load_cluster(remote + 16);
                v[0] += lo.x; v[1] += lo.y; v[2] += lo.z; v[3] += lo.w;
                v[4] += hi.x; v[5] += hi.y; v[6] += hi.z; v[7] += hi.w;
            }
            if (relu) {
#pragma unroll
                for (int i = 0; i < 8; ++i) v[i] = fmaxf(v[i], 0.0f);
            }
            __half* dst = output + static_cast<int64_t>(m) * N + n;
            if (vector_out) {
                __half2 h[4];
#pragma unroll
                for (int i = 0; i < 4; ++i) h[i] = __floats2half2_rn(v[2 * i], v[2 * i + 1]);
                uint4 packed;
                packed.x = *reinterpret_cast<unsigned*>(&h[0]);
                packed.y = *reinterpret_cast<unsigned*>(&h[1]);
                packed.z = *reinterpret_cast<unsigned*>(&h[2]);
                packed.w = *reinterpret_cast<unsigned*>(&h[3]);
                *reinterpret_cast<uint4*>(dst) = packed;
            } else {
#pragma unroll
                for (int i = 0; i < 8; ++i)
                    if (n + i < N) dst[i] = __float2half_rn(v[i]);
            }
        }
    }
    // No block leaves while another may still read its sums.
    cluster_sync_all();
}

// ------------------------------------------------------------------------------------------ host side
typedef CUresult (*EncodeFn)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                             const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                             CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static EncodeFn find_encode() {
    void* fn = nullptr;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    const cudaError_t status =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &fn, 12000, cudaEnableDefault, &result);
#else
    const cudaError_t status = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &fn, cudaEnableDefault, &result);
#endif
    if (status != cudaSuccess || result != cudaDriverEntryPointSuccess) {
        cudaGetLastError();
        return nullptr;
    }
    return reinterpret_cast<EncodeFn>(fn);
}

static bool encode(EncodeFn fn, CUtensorMap* map, const void* base, int64_t rows, int64_t cols, int box_rows) {
    const cuuint64_t dims[2] = {static_cast<cuuint64_t>(cols), static_cast<cuuint64_t>(rows)};
    const cuuint64_t strides[1] = {static_cast<cuuint64_t>(cols) * 2};
    const cuuint32_t box[2] = {64, static_cast<cuuint32_t>(box_rows)};
    const cuuint32_t element_strides[2] = {1, 1};
    return fn(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, const_cast<void*>(base), dims, strides, box, element_strides,
              CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
              CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// Grown on demand and kept, so that later calls allocate nothing.
static scalar_t* workspace(int64_t count) {
    static scalar_t* buffer = nullptr;
    static int64_t capacity = 0;
    if (count > capacity) {
        check(cudaFree(buffer));
        check(cudaMalloc(reinterpret_cast<void**>(&buffer), count * sizeof(scalar_t)));
        capacity = count;
    }
    return buffer;
}

template <int BN>
static void fill_config(cudaLaunchConfig_t* config, cudaLaunchAttribute* attrs, int64_t blocks, int splits,
                        bool dependent) {
    config->gridDim = dim3(static_cast<unsigned>(blocks), 1, 1);
    config->blockDim = dim3(THREADS, 1, 1);
    config->dynamicSmemBytes = Tile<BN>::kSmem;
    config->stream = 0;
    attrs[0].id = cudaLaunchAttributeClusterDimension;
    attrs[0].val.clusterDim.x = static_cast<unsigned>(splits);
    attrs[0].val.clusterDim.y = 1;
    attrs[0].val.clusterDim.z = 1;
    config->numAttrs = 1;
    if (dependent) {
        attrs[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attrs[1].val.programmaticStreamSerializationAllowed = 1;
        config->numAttrs = 2;
    }
    config->attrs = attrs;
}

// How many clusters of 1, 2, 3 and 4 blocks the device runs at a time (a property of the device, asked once).
template <int BN>
static const int* active_clusters() {
    static int counts[4] = {0, 0, 0, 0};
    if (counts[0] == 0) {
        check(cudaFuncSetAttribute(linear_tma<BN>, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile<BN>::kSmem));
        for (int i = 3; i >= 0; --i) {
            cudaLaunchConfig_t config = {};
            cudaLaunchAttribute attrs[2];
            fill_config<BN>(&config, attrs, i + 1, i + 1, false);
            int n = 0;
            if (cudaOccupancyMaxActiveClusters(&n, linear_tma<BN>, &config) != cudaSuccess) {
                cudaGetLastError();
                n = 112 / (i + 1);
            }
            counts[i] = n > 0 ? n : 1;
        }
    }
    return counts;
}

struct Plan {
    bool tensor;  // TMA + wgmma
    int bn, splits, kt_per_split, kt_all;
    int64_t m_tiles, n_tiles;
    CUtensorMap map_a, map_b;
};

static void make_plan(Plan* plan, EncodeFn fn, const __half* x, const void* weight, int64_t rows, int64_t in_features,
                      int64_t out_features) {
    plan->tensor = false;
    const int64_t limit = 100000000;
    const int64_t m_tiles = (rows + BM - 1) / BM;
    const bool fits = fn != nullptr && rows > 0 && out_features > 0 && in_features > 0 && in_features % 8 == 0 &&
                      reinterpret_cast<uintptr_t>(x) % 16 == 0 && reinterpret_cast<uintptr_t>(weight) % 16 == 0 &&
                      rows <= limit && in_features <= limit && out_features <= limit &&
                      m_tiles * ((out_features + 63) / 64) <= limit;
    if (!fits) return;
    // Waves times the bytes that one block copies: the smallest wins.
    const int64_t kt_all = (in_features + BK - 1) / BK;
    int64_t best = -1;
    plan->bn = 128;
    plan->splits = 1;
    for (int k = 0; k < 3; ++k) {
        const int bn = 256 >> k;
        const int* active = k == 0 ? active_clusters<256>() : (k == 1 ? active_clusters<128>() : active_clusters<64>());
        const int64_t tiles = m_tiles * ((out_features + bn - 1) / bn);
        for (int splits = 1; splits <= 4; ++splits) {
            const int64_t waves = (tiles + active[splits - 1] - 1) / active[splits - 1];
            const int64_t cost = waves * ((kt_all + splits - 1) / splits + 4) * (BM + bn);
            if (best < 0 || cost < best) {
                best = cost;
                plan->bn = bn;
                plan->splits = splits;
            }
        }
    }
    plan->kt_all = static_cast<int>(kt_all);
    plan->kt_per_split = static_cast<int>((kt_all + plan->splits - 1) / plan->splits);
    plan->m_tiles = m_tiles;
    plan->n_tiles = (out_features + plan->bn - 1) / plan->bn;
    plan->tensor = encode(fn, &plan->map_a, x, rows, in_features, BM) &&
                   encode(fn, &plan->map_b, weight, out_features, in_features, plan->bn);
}

template <int BN>
static void launch_layer(const Plan& plan, const Plan* next, __half* output, const __half* bias, int64_t rows,
                         int64_t in_features, int64_t out_features, bool relu, bool dependent) {
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attrs[2];
    fill_config<BN>(&config, attrs, plan.m_tiles * plan.n_tiles * plan.splits, plan.splits, dependent);
    const int vector_out = out_features % 8 == 0 && reinterpret_cast<uintptr_t>(output) % 16 == 0;
    NextLayer ahead = {0, 1, 0, 0, 0, 0};
    CUtensorMap map_next = plan.map_b;  // unused without a next layer
    if (next != nullptr && next->tensor) {
        map_next = next->map_b;
        ahead.units = static_cast<int>(next->n_tiles * next->splits);
        ahead.splits = next->splits;
        ahead.kt_per_split = next->kt_per_split;
        ahead.kt_all = next->kt_all;
        ahead.bn = next->bn;
        // about 20 MB in all
        const int64_t tile_bytes = static_cast<int64_t>(next->bn) * BK * 2;
        const int64_t depth = (static_cast<int64_t>(20) << 20) / (tile_bytes * ahead.units);
        ahead.depth = static_cast<int>(depth < 1 ? 1 : (depth > 16 ? 16 : depth));
        if (ahead.units > 1024) ahead.units = 1024;
    }
    check(cudaLaunchKernelEx(&config, linear_tma<BN>, plan.map_a, plan.map_b, map_next, ahead, output, bias,
                             static_cast<int>(rows), static_cast<int>(out_features), static_cast<int>(in_features),
                             static_cast<int>(plan.m_tiles), plan.splits, plan.kt_per_split, static_cast<int>(relu),
                             vector_out));
}

static void linear(const Plan& plan, const Plan* next, scalar_t* output, const scalar_t* x, const void* weight,
                   const void* bias, int64_t rows, int64_t in_features, int64_t out_features, bool relu,
                   bool dependent) {
    if (rows <= 0 || out_features <= 0) return;
    const __half* w = static_cast<const __half*>(weight);
    const __half* b = static_cast<const __half*>(bias);
    if (plan.tensor) {
        if (plan.bn == 256)
            launch_layer<256>(plan, next, output, b, rows, in_features, out_features, relu, dependent);
        else if (plan.bn == 128)
            launch_layer<128>(plan, next, output, b, rows, in_features, out_features, relu, dependent);
        else
            launch_layer<64>(plan, next, output, b, rows, in_features, out_features, relu, dependent);
        return;
    }
    const dim3 blocks(static_cast<unsigned>((out_features + FT - 1) / FT), static_cast<unsigned>((rows + FT - 1) / FT));
    linear_wmma<<<blocks, 128>>>(output, x, w, b, rows, out_features, in_features, static_cast<int>(relu));
    check(cudaGetLastError());
}

void launch_gpu_implementation(void* output, void* x, void* network_0_weight, void* network_0_bias,
                               void* network_2_weight, void* network_2_bias, void* network_4_weight,
                               void* network_4_bias, int64_t batch_size, int64_t input_size, int64_t layer_size1,
                               int64_t layer_size2, int64_t output_size) {
    const int64_t first = (batch_size * layer_size1 + 127) / 128 * 128;
    scalar_t* hidden1 = workspace(first + batch_size * layer_size2);
    scalar_t* hidden2 = hidden1 + first;
    const scalar_t* input = static_cast<const scalar_t*>(x);
    static EncodeFn fn = find_encode();
    Plan p1, p2, p3;
    make_plan(&p1, fn, input, network_0_weight, batch_size, input_size, layer_size1);
    make_plan(&p2, fn, hidden1, network_2_weight, batch_size, layer_size1, layer_size2);
    make_plan(&p3, fn, hidden2, network_4_weight, batch_size, layer_size2, output_size);
    linear(p1, &p2, hidden1, input, network_0_weight, network_0_bias, batch_size, input_size, layer_size1, true, false);
    linear(p2, &p3, hidden2, hidden1, network_2_weight, network_2_bias, batch_size, layer_size1, layer_size2, true,
           true);
    linear(p3, nullptr, static_cast<scalar_t*>(output), hidden2, network_4_weight, network_4_bias, batch_size,
           layer_size2, output_size, false, true);
}
