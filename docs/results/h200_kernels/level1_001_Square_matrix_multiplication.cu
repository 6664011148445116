// KernelBlaster: level1/001, fp16, size medium
// measured speed-up over the start 63.536x (95 %: 63.244 to 63.752), 7063.14 us -> 111.17 us per call, cold L2
// device: NVIDIA H200 (sm_90)
// C = A B on Hopper tensor cores: persistent clusters of 2 x 2 blocks, 192 x 192 x 64 tiles. One producer warp fills a
// 4-stage ring by TMA (128-byte swizzle); each block loads half of its A tile and half of its B tile and multicasts them
// along its cluster row and column, so that L2 is read half as often as without clusters. Three consumer warpgroups
// issue wgmma m64n192k16; registers move from the producer's warpgroup to them. Where fewer 2 x 2 clusters fit, pairs
// of blocks share only B. n not divisible by 8 or unaligned pointers: fp32 tiles.
#include <kernelblaster/scalar.cuh>

#include <cuda.h>
#include <cuda_runtime.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

namespace {

constexpr int BM = 192, BN = 192, BK = 64, STAGES = 4;
constexpr int CONSUMERS = 384, THREADS = CONSUMERS + 128;
constexpr int GROUP = 4;                      // pairs of tile rows per raster group
constexpr int A_BYTES = BM * BK * 2;          // 192 rows of 128 bytes
constexpr int B_BLOCK = BK * 128;             // 64 k rows of 64 columns
constexpr int B_BYTES = 3 * B_BLOCK;
constexpr int STAGE_BYTES = A_BYTES + B_BYTES;
constexpr int EPI_LD = 72;                    // halves per staged output row (64 columns + padding)
constexpr int EPI_WARP = 16 * EPI_LD * 2;
constexpr int EPI_OFF = STAGES * STAGE_BYTES;
constexpr int BAR_OFF = EPI_OFF + 12 * EPI_WARP;
constexpr int SMEM_BYTES = BAR_OFF + 2 * STAGES * 8 + 1024;
static_assert(SMEM_BYTES <= 232448, "shared memory");

__device__ __forceinline__ uint64_t make_desc(uint32_t addr, uint32_t lbo, uint32_t sbo) {
    return static_cast<uint64_t>((addr & 0x3FFFF) >> 4) | (static_cast<uint64_t>(lbo >> 4) << 16) |
           (static_cast<uint64_t>(sbo >> 4) << 32) | (static_cast<uint64_t>(1) << 62);
}

__device__ __forceinline__ void bar_init(uint32_t bar, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(bar), "r"(count) : "memory");
}
__device__ __forceinline__ void bar_expect(uint32_t bar, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ void bar_wait(uint32_t bar, uint32_t parity) {
    uint32_t done;
    do {
        asm volatile(
            "{\n"
            ".reg .pred p;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n"
            "}\n"
            : "=r"(done)
            : "r"(bar), "r"(parity)
            : "memory");
    } while (!done);
}
__device__ __forceinline__ void bar_arrive_cluster(uint32_t bar, uint32_t rank) {
    asm volatile(
        "{\n"
        ".reg .b32 remote;\n"
        "mapa.shared::cluster.u32 remote, %0, %1;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n"
        "}\n" ::"r"(bar),
        "r"(rank)
        : "memory");
}
__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release;\n" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;\n" ::: "memory");
}
__device__ __forceinline__ void tma_load(uint32_t dst, const CUtensorMap* map, int c0, int c1, uint32_t bar) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];\n" ::
            "r"(dst),
        "l"(reinterpret_cast<uint64_t>(map)), "r"(c0), "r"(c1), "r"(bar)
        : "memory");
}
__device__ __forceinline__ void tma_load_pair(uint32_t dst, const CUtensorMap* map, int c0, int c1, uint32_t bar,
                                              uint16_t mask) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%2, %3}], [%4], %5;\n" ::"r"(dst),
        "l"(reinterpret_cast<uint64_t>(map)), "r"(c0), "r"(c1), "r"(bar), "h"(mask)
        : "memory");
}

#define ACC8(b)                                                                                              \
    "+f"(d[(b) + 0]), "+f"(d[(b) + 1]), "+f"(d[(b) + 2]), "+f"(d[(b) + 3]), "+f"(d[(b) + 4]), "+f"(d[(b) + 5]), \
        "+f"(d[(b) + 6]), "+f"(d[(b) + 7])

__device__ __forceinline__ void wgmma_n192(float (&d)[96], uint64_t desc_a, uint64_t desc_b, int scale_d) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %98, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n192k16.f32.f16.f16 "
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
        "%88, %89, %90, %91, %92, %93, %94, %95}, "
        "%96, %97, p, 1, 1, 0, 1;\n"
        "}\n"
        : ACC8(0), ACC8(8), ACC8(16), ACC8(24), ACC8(32), ACC8(40), ACC8(48), ACC8(56), ACC8(64), ACC8(72), ACC8(80),
          ACC8(88)
        : "l"(desc_a), "l"(desc_b), "r"(scale_d)
        : "memory");
}

__device__ __forceinline__ void fence_regs(float (&d)[96]) {
#pragma unroll
    for (int i = 0; i < 96; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// Cluster tile index -> cluster row and column.
__device__ __forceinline__ void cluster_coords(int p, int cols, int rows_all, int& cm, int& cn) {
    const int per_group = GROUP * cols;
    const int first = (p / per_group) * GROUP;
    const int rows = min(rows_all - first, GROUP);
    const int rest = p % per_group;
    cm = first + rest % rows;
    cn = rest / rows;
}

// A cluster is 2 block rows by CN block columns.
template <int CN>
__global__ void __launch_bounds__(THREADS, 1)
    matmul_tma(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
               __half* __restrict__ C, int n, int cols, int rows_all) {
    extern __shared__ unsigned char smem_raw[];
    const uint32_t raw = static_cast<uint32_t>(__cvta_generic_to_shared(smem_raw));
    const uint32_t base = (raw + 1023u) & ~1023u;
    unsigned char* smem = smem_raw + (base - raw);
    const uint32_t full = base + BAR_OFF, empty = full + STAGES * 8;

    const int t = threadIdx.x;
    const int warp = t >> 5, lane = t & 31;
    const int rank = blockIdx.x % (2 * CN);  // clusters are consecutive blocks
    const int mrank = rank / CN, nrank = rank % CN;
    const int clusters = gridDim.x / (2 * CN);
    const int first_tile = blockIdx.x / (2 * CN);
    const int total = rows_all * cols;
    const int k_tiles = (n + BK - 1) / BK;

    if (t == 0) {
        for (int s = 0; s < STAGES; ++s) {
            bar_init(full + s * 8, 1);
            bar_init(empty + s * 8, 12 * (CN + 1));  // consumer warps of this block, its row and its column mate
        }
        asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
    }
    __syncthreads();
    cluster_sync();

    if (warp >= CONSUMERS / 32) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 32;\n");
        if (warp == CONSUMERS / 32 && lane == 0) {
            asm volatile("prefetch.tensormap [%0];\n" ::"l"(reinterpret_cast<uint64_t>(&map_a)) : "memory");
            asm volatile("prefetch.tensormap [%0];\n" ::"l"(reinterpret_cast<uint64_t>(&map_b)) : "memory");
            const uint16_t a_mask = static_cast<uint16_t>(3 << (mrank * 2));
            const uint16_t b_mask = static_cast<uint16_t>(CN == 1 ? 3 : 5 << nrank);
            int s = 0;
            uint32_t phase = 0;
            for (int p = first_tile; p < total; p += clusters) {
                int cm, cn;
                cluster_coords(p, cols, rows_all, cm, cn);
                const int m0 = (cm * 2 + mrank) * BM, n0 = (cn * CN + nrank) * BN;
                for (int kt = 0; kt < k_tiles; ++kt) {
                    bar_wait(empty + s * 8, phase ^ 1);
                    const uint32_t bar = full + s * 8;
                    const uint32_t stage = base + s * STAGE_BYTES;
                    bar_expect(bar, STAGE_BYTES);
                    const int k0 = kt * BK;
                    if (CN == 1) {
                        tma_load(stage, &map_a, k0, m0, bar);
                    } else {
                        tma_load_pair(stage + nrank * (A_BYTES / 2), &map_a, k0, m0 + nrank * (BM / 2), bar, a_mask);
                    }
                    const uint32_t b_dst = stage + A_BYTES + mrank * (B_BLOCK / 2);
#pragma unroll
                    for (int c = 0; c < 3; ++c)
                        tma_load_pair(b_dst + c * B_BLOCK, &map_b, n0 + c * 64, k0 + mrank * (BK / 2), bar, b_mask);
                    if (++s == STAGES) {
                        s = 0;
                        phase ^= 1;
                    }
                }
            }
        }
        __syncwarp();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 160;\n");
        const int wg = t >> 7;
        __half* out = reinterpret_cast<__half*>(smem + EPI_OFF + warp * EPI_WARP);
        float d[96];
#pragma unroll
        for (int i = 0; i < 96; ++i) d[i] = 0.0f;

        int s = 0, prev = 0;
        uint32_t phase = 0;
        for (int p = first_tile; p < total; p += clusters) {
            int cm, cn;
            cluster_coords(p, cols, rows_all, cm, cn);
            const int m0 = (cm * 2 + mrank) * BM, n0 = (cn * CN + nrank) * BN;

            fence_regs(d);
            for (int kt = 0; kt < k_tiles; ++kt) {
                bar_wait(full + s * 8, phase);
                const uint32_t stage = base + s * STAGE_BYTES;
                const uint64_t da = make_desc(stage + wg * (64 * 128), 16, 1024);
                const uint64_t db = make_desc(stage + A_BYTES, B_BLOCK, 1024);
                asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#pragma unroll
                for (int kk = 0; kk < 4; ++kk) {
                    // K step of 16: 32 bytes along A's rows, 16 rows of 128 bytes of B (units of 16 bytes).
                    wgmma_n192(d, da + kk * 2, db + kk * 128, (kt | kk) != 0 ? 1 : 0);
                }
                asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
                asm volatile("wgmma.wait_group.sync.aligned 1;\n" ::: "memory");
                if (kt > 0 && lane <= CN) bar_arrive_cluster(empty + prev * 8, rank ^ lane);
                __syncwarp();
                prev = s;
                if (++s == STAGES) {
                    s = 0;
                    phase ^= 1;
                }
            }
            asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
            fence_regs(d);
            if (lane <= CN) bar_arrive_cluster(empty + prev * 8, rank ^ lane);
            __syncwarp();

            // Each warp owns 16 rows x 192 columns: 64 columns at a time through its own shared memory.
            const int r = lane >> 2, c = (lane & 3) * 2;
            const int row0 = m0 + warp * 16;
#pragma unroll
            for (int h = 0; h < 3; ++h) {
#pragma unroll
                for (int j = 0; j < 8; ++j) {
                    const int q = 4 * (h * 8 + j);
                    *reinterpret_cast<__half2*>(out + r * EPI_LD + j * 8 + c) = __floats2half2_rn(d[q], d[q + 1]);
                    *reinterpret_cast<__half2*>(out + (r + 8) * EPI_LD + j * 8 + c) =
                        __floats2half2_rn(d[q + 2], d[q + 3]);
                }
                __syncwarp();
                const int cc = (lane & 7) * 8;
                const int col = n0 + h * 64 + cc;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int rr = (lane >> 3) + 4 * i;
                    const int row = row0 + rr;
                    if (row < n && col < n)
                        *reinterpret_cast<uint4*>(C + static_cast<int64_t>(row) * n + col) =
                            *reinterpret_cast<const uint4*>(out + rr * EPI_LD + cc);
                }
                __syncwarp();
            }
        }
    }
    // No block leaves while its mates may still multicast into it or arrive on its barriers.
    cluster_sync();
}

// Any n and any alignment: 64 x 64 tiles, 4 x 4 outputs per thread, fp32.
__global__ void __launch_bounds__(256)
    matmul_any(scalar_t* __restrict__ C, const scalar_t* __restrict__ A, const scalar_t* __restrict__ B, int64_t n) {
    __shared__ float a_tile[16][65];
    __shared__ float b_tile[16][65];
    const int t = threadIdx.x, tx = t & 15, ty = t >> 4;
    const int64_t m0 = static_cast<int64_t>(blockIdx.y) * 64, n0 = static_cast<int64_t>(blockIdx.x) * 64;
    float acc[4][4] = {};
    for (int64_t k0 = 0; k0 < n; k0 += 16) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int e = t + 256 * i;
            const int ar = e >> 4, ak = e & 15, bk = e >> 6, bc = e & 63;
            a_tile[ak][ar] = m0 + ar < n && k0 + ak < n ? to_float(A[(m0 + ar) * n + k0 + ak]) : 0.0f;
            b_tile[bk][bc] = k0 + bk < n && n0 + bc < n ? to_float(B[(k0 + bk) * n + n0 + bc]) : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            float a[4], b[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                a[i] = a_tile[k][ty + 16 * i];
                b[i] = b_tile[k][tx + 16 * i];
            }
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) acc[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int64_t row = m0 + ty + 16 * i, col = n0 + tx + 16 * j;
            if (row < n && col < n) C[row * n + col] = from_float(acc[i][j]);
        }
}

typedef CUresult (*EncodeFn)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                             const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                             CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

EncodeFn get_encode() {
    void* fn = nullptr;
    cudaDriverEntryPointQueryResult result;
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

bool make_map(EncodeFn encode, CUtensorMap* map, void* ptr, int64_t n, unsigned box_cols, unsigned box_rows) {
    const cuuint64_t dims[2] = {static_cast<cuuint64_t>(n), static_cast<cuuint64_t>(n)};
    const cuuint64_t strides[1] = {static_cast<cuuint64_t>(n) * 2};
    const cuuint32_t box[2] = {box_cols, box_rows};
    const cuuint32_t elem[2] = {1, 1};
    return encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, ptr, dims, strides, box, elem,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

template <int CN>
cudaLaunchConfig_t make_config(cudaLaunchAttribute* attr, int clusters) {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(2 * CN * clusters), 1, 1);
    config.blockDim = dim3(THREADS, 1, 1);
    config.dynamicSmemBytes = SMEM_BYTES;
    config.stream = 0;
    attr[0].id = cudaLaunchAttributeClusterDimension;
    attr[0].val.clusterDim.x = 2 * CN;
    attr[0].val.clusterDim.y = 1;
    attr[0].val.clusterDim.z = 1;
    config.attrs = attr;
    config.numAttrs = 1;
    return config;
}

// How many clusters of this shape the GPU holds at once.
template <int CN>
int max_clusters(int sms) {
    check(cudaFuncSetAttribute(matmul_tma<CN>, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM_BYTES));
    cudaLaunchAttribute attr[1];
    const cudaLaunchConfig_t config = make_config<CN>(attr, sms / (2 * CN));
    int count = 0;
    if (cudaOccupancyMaxActiveClusters(&count, matmul_tma<CN>, &config) != cudaSuccess) {
        cudaGetLastError();
        count = 0;
    }
    return count;
}

template <int CN>
void launch(const CUtensorMap& map_a, const CUtensorMap& map_b, __half* C, int n, int cols, int rows_all, int most) {
    const int total = cols * rows_all;
    cudaLaunchAttribute attr[1];
    const cudaLaunchConfig_t config = make_config<CN>(attr, total < most ? total : most);
    check(cudaLaunchKernelEx(&config, matmul_tma<CN>, map_a, map_b, C, n, cols, rows_all));
}

}  // namespace

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    if (n <= 0) return;
    const uintptr_t bits =
        reinterpret_cast<uintptr_t>(output) | reinterpret_cast<uintptr_t>(A) | reinterpret_cast<uintptr_t>(B);
    bool done = false;
    if (n % 8 == 0 && bits % 16 == 0) {
        static EncodeFn encode = nullptr;
        static int most_pair = -1, most_quad = -1;
        if (most_pair < 0) {
            encode = get_encode();
            int device = 0, sms = 0;
            check(cudaGetDevice(&device));
            check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
            most_quad = max_clusters<2>(sms);
            most_pair = max_clusters<1>(sms);
        }
        const int tile_rows = static_cast<int>((n + BM - 1) / BM), tile_cols = static_cast<int>((n + BN - 1) / BN);
        const int rows_all = (tile_rows + 1) / 2, quad_cols = (tile_cols + 1) / 2;
        const int never = 1 << 30;
        const int quad_waves = most_quad > 0 ? (rows_all * quad_cols + most_quad - 1) / most_quad : never;
        const int pair_waves = most_pair > 0 ? (rows_all * tile_cols + most_pair - 1) / most_pair : never;
        const bool quad = quad_waves <= pair_waves;
        CUtensorMap map_a, map_b;
        if (encode != nullptr && (most_quad > 0 || most_pair > 0) &&
            make_map(encode, &map_a, A, n, BK, quad ? BM / 2 : BM) && make_map(encode, &map_b, B, n, 64, BK / 2)) {
            __half* C = static_cast<__half*>(output);
            if (quad)
                launch<2>(map_a, map_b, C, static_cast<int>(n), quad_cols, rows_all, most_quad);
            else
                launch<1>(map_a, map_b, C, static_cast<int>(n), tile_cols, rows_all, most_pair);
            done = true;
        }
    }
    if (!done) {
        const unsigned blocks = static_cast<unsigned>((n + 63) / 64);
        matmul_any<<<dim3(blocks, blocks), 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(A),
                                                  static_cast<const scalar_t*>(B), n);
    }
    check(cudaGetLastError());
}
