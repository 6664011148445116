// KernelBlaster: level2/059, fp16, size medium
// measured speed-up over the start 36.928x (95 %: 36.683 to 37.043), 2291.90 us -> 62.06 us per call, cold L2
// device: NVIDIA H200 (sm_90)
// scaling_factor * y * sigmoid(y), y = x W^T + b, computed transposed on wgmma: the 256 x 64 weight tile is the M
// operand of four consumer warpgroups (m64n128k16), the 128 x 64 tile of x is the N operand of all four. A fifth
// warpgroup only copies (cp.async + mbarriers, four stages, three in flight). Four independent blocks (no cluster, so
// every SM can be used) split K; they exchange slices of their accumulators in fragment order through a scratch buffer
// and each finishes a quarter of the batch rows. Unaligned rows: fp32 tiles.
#include <kernelblaster/scalar.cuh>

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

constexpr int BF = 256, BB = 128, BK = 64, STAGES = 4, SPLIT = 4;  // features, batch rows, K step
constexpr int CONSUMERS = 512, PRODUCERS = 128, THREADS = CONSUMERS + PRODUCERS;
constexpr int W_BYTES = BF * BK * 2;
constexpr int X_BYTES = BB * BK * 2;
constexpr int STAGE_BYTES = W_BYTES + X_BYTES;
constexpr int SMEM_BYTES = STAGES * STAGE_BYTES + 1024;
constexpr int SLICE = 16 * CONSUMERS;               // floats of one accumulator slice (32 batch rows x 256 features)
constexpr int TILE_FLOATS = SPLIT * SPLIT * SLICE;  // scratch of one output tile
constexpr int OUT_LD = BF + 8;                      // halves per batch row of the staged output

__device__ __forceinline__ void cp16_w(uint32_t dst, const void* src, bool ok) {
    const int bytes = ok ? 16 : 0;
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;\n" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}
__device__ __forceinline__ void cp16_x(uint32_t dst, const void* src, bool ok) {
    const int bytes = ok ? 16 : 0;
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;\n" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}
__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
template <int N>
__device__ __forceinline__ void cp_wait() { asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory"); }

__device__ __forceinline__ void mbar_init(uint32_t bar, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(bar), "r"(count) : "memory");
}
__device__ __forceinline__ void mbar_arrive(uint32_t bar) {
    asm volatile("{\n.reg .b64 st;\nmbarrier.arrive.shared::cta.b64 st, [%0];\n}\n" ::"r"(bar) : "memory");
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
__device__ __forceinline__ void consumer_sync() { asm volatile("bar.sync 1, %0;\n" ::"n"(CONSUMERS) : "memory"); }

__device__ __forceinline__ unsigned load_acquire(const unsigned* p) {
    unsigned v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];\n" : "=r"(v) : "l"(p) : "memory");
    return v;
}

// K-major operand, 128-byte swizzle: 8-row groups of 1024 bytes.
__device__ __forceinline__ uint64_t make_desc(uint32_t addr) {
    return static_cast<uint64_t>((addr & 0x3FFFF) >> 4) | (static_cast<uint64_t>(1) << 16) |
           (static_cast<uint64_t>(1024 >> 4) << 32) | (static_cast<uint64_t>(1) << 62);
}

#define ACC8(b)                                                                                              \
    "+f"(d[(b) + 0]), "+f"(d[(b) + 1]), "+f"(d[(b) + 2]), "+f"(d[(b) + 3]), "+f"(d[(b) + 4]), "+f"(d[(b) + 5]), \
        "+f"(d[(b) + 6]), "+f"(d[(b) + 7])

__device__ __forceinline__ void wgmma_n128(float (&d)[64], uint64_t desc_a, uint64_t desc_b, int scale_d) {
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
        : ACC8(0), ACC8(8), ACC8(16), ACC8(24), ACC8(32), ACC8(40), ACC8(48), ACC8(56)
        : "l"(desc_a), "l"(desc_b), "r"(scale_d)
        : "memory");
}

__device__ __forceinline__ void fence_regs(float (&d)[64]) {
#pragma unroll
    for (int i = 0; i < 64; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

__device__ __forceinline__ float swish(float y, float scale) { return y / (1.0f + expf(-y)) * scale; }

__global__ void __launch_bounds__(THREADS, 1)
    linear_swish_wgmma(scalar_t* __restrict__ output, const scalar_t* __restrict__ x,
                       const scalar_t* __restrict__ weight, const scalar_t* __restrict__ bias, float* scratch,
                       unsigned* counters, int64_t rows, int64_t in_features, int64_t out_features, float scale,
                       int vector_store) {
    extern __shared__ unsigned char smem_raw[];
    __shared__ __align__(8) uint64_t bars[2 * STAGES];
    const uint32_t raw = static_cast<uint32_t>(__cvta_generic_to_shared(smem_raw));
    const uint32_t base = (raw + 1023u) & ~1023u;
    unsigned char* smem = smem_raw + (base - raw);
    const uint32_t full = static_cast<uint32_t>(__cvta_generic_to_shared(bars));
    const uint32_t empty = full + 8 * STAGES;

    const int rank = static_cast<int>(blockIdx.x % SPLIT);
    const int64_t tile = static_cast<int64_t>(blockIdx.y) * (gridDim.x / SPLIT) + blockIdx.x / SPLIT;
    const int64_t b0 = static_cast<int64_t>(blockIdx.y) * BB;
    const int64_t f0 = static_cast<int64_t>(blockIdx.x / SPLIT) * BF;
    const int t = threadIdx.x, wg = t >> 7, lane = t & 31;

    const int all_tiles = static_cast<int>((in_features + BK - 1) / BK);
    const int per_rank = (all_tiles + SPLIT - 1) / SPLIT;
    const int first = min(rank * per_rank, all_tiles);
    const int count = min(per_rank, all_tiles - first);

    if (t == 0) {
#pragma unroll
        for (int s = 0; s < STAGES; ++s) {
            mbar_init(full + 8 * s, PRODUCERS);
            mbar_init(empty + 8 * s, CONSUMERS / 32);
        }
    }
    __syncthreads();

    if (wg == CONSUMERS / 128) {
        // Producer warpgroup.
        const int p = t - CONSUMERS;
        const int chunk = p & 7, row = p >> 3;  // rows row + 16 i
        const uint32_t dst = base + row * 128 + ((chunk ^ (row & 7)) << 4);
        const scalar_t* w_src = weight + (f0 + row) * in_features + chunk * 8;
        const scalar_t* x_src = x + (b0 + row) * in_features + chunk * 8;
        const int64_t step = 16 * in_features;
        unsigned w_ok = 0, x_ok = 0;
#pragma unroll
        for (int i = 0; i < 16; ++i) w_ok |= (f0 + row + 16 * i < out_features ? 1u : 0u) << i;
#pragma unroll
        for (int i = 0; i < 8; ++i) x_ok |= (b0 + row + 16 * i < rows ? 1u : 0u) << i;

        for (int it = 0; it < count; ++it) {
            const int s = it % STAGES;
            if (it >= STAGES) mbar_wait(empty + 8 * s, ((it / STAGES) - 1) & 1);
            const int64_t k0 = static_cast<int64_t>(first + it) * BK;
            const bool k_ok = k0 + chunk * 8 < in_features;
            const uint32_t at = dst + s * STAGE_BYTES;
            const scalar_t* wp = w_src + k0;
            const scalar_t* xp = x_src + k0;
#pragma unroll
            for (int i = 0; i < 16; ++i) {
                const bool ok = k_ok && ((w_ok >> i) & 1u);
                cp16_w(at + i * (16 * 128), ok ? wp : weight, ok);
                wp += step;
            }
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const bool ok = k_ok && ((x_ok >> i) & 1u);
                cp16_x(at + W_BYTES + i * (16 * 128), ok ? xp : x, ok);
                xp += step;
            }
            cp_commit();
            if (it >= 2) {
                cp_wait<2>();
                asm volatile("fence.proxy.async;\n" ::: "memory");
                mbar_arrive(full + 8 * ((it - 2) % STAGES));
            }
        }
        if (count >= 2) {
            cp_wait<1>();
            asm volatile("fence.proxy.async;\n" ::: "memory");
            mbar_arrive(full + 8 * ((count - 2) % STAGES));
        }
        if (count >= 1) {
            cp_wait<0>();
            asm volatile("fence.proxy.async;\n" ::: "memory");
            mbar_arrive(full + 8 * ((count - 1) % STAGES));
        }
        return;
    }

    // Consumers: 512 threads, each warpgroup 64 features x 128 batch rows.
    float d[64];
#pragma unroll
    for (int i = 0; i < 64; ++i) d[i] = 0.0f;
    fence_regs(d);

    for (int it = 0; it < count; ++it) {
        const int s = it % STAGES;
        mbar_wait(full + 8 * s, (it / STAGES) & 1);
        const uint32_t stage = base + s * STAGE_BYTES;
        const uint64_t da = make_desc(stage + wg * (64 * 128));
        const uint64_t db = make_desc(stage + W_BYTES);
        asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#pragma unroll
        for (int kk = 0; kk < 4; ++kk) wgmma_n128(d, da + kk * 2, db + kk * 2, 1);
        asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;\n" ::: "memory");
        if (it > 0 && lane == 0) mbar_arrive(empty + 8 * ((it - 1) % STAGES));
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
    fence_regs(d);

    // Slice q of the accumulators (batch rows 32 q .. 32 q + 31) belongs to block q: hand the other three over.
    float* tile_scratch = scratch + tile * TILE_FLOATS;
    float sum[16];
#pragma unroll
    for (int q = 0; q < SPLIT; ++q) {
        if (q == rank) {
#pragma unroll
            for (int i = 0; i < 16; ++i) sum[i] = d[16 * q + i];
        } else {
            float4* dst = reinterpret_cast<float4*>(tile_scratch + (q * SPLIT + rank) * SLICE) + t;
#pragma unroll
            for (int i = 0; i < 4; ++i)
                __stcg(dst + i * CONSUMERS, make_float4(d[16 * q + 4 * i], d[16 * q + 4 * i + 1],
                                                        d[16 * q + 4 * i + 2], d[16 * q + 4 * i + 3]));
        }
    }
    __threadfence();

    const int f = wg * 64 + ((t >> 5) & 3) * 16 + (lane >> 2);
    const float bias_lo = f0 + f < out_features ? to_float(bias[f0 + f]) : 0.0f;
    const float bias_hi = f0 + f + 8 < out_features ? to_float(bias[f0 + f + 8]) : 0.0f;

    consumer_sync();
    if (t == 0) {
        __threadfence();
        atomicAdd(counters + tile, 1u);
        while ((load_acquire(counters + tile) & 0xFFu) != SPLIT) {
        }
        __threadfence();
    }
    consumer_sync();

    const float4* in = reinterpret_cast<const float4*>(tile_scratch + rank * SPLIT * SLICE) + t;
    float4 got[3][4];
#pragma unroll
    for (int o = 0; o < 3; ++o) {
        const int src = o + (o >= rank ? 1 : 0);
#pragma unroll
        for (int i = 0; i < 4; ++i) got[o][i] = __ldcg(in + src * (SLICE / 4) + i * CONSUMERS);
    }
#pragma unroll
    for (int o = 0; o < 3; ++o)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            sum[4 * i] += got[o][i].x;
            sum[4 * i + 1] += got[o][i].y;
            sum[4 * i + 2] += got[o][i].z;
            sum[4 * i + 3] += got[o][i].w;
        }

    // Stage the 32 x 256 outputs as [batch][feature].
    scalar_t* stage_out = reinterpret_cast<scalar_t*>(smem);
    {
        const int b = (lane & 3) * 2;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            scalar_t* o = stage_out + (j * 8 + b) * OUT_LD + f;
            o[0] = from_float(swish(sum[4 * j] + bias_lo, scale));
            o[OUT_LD] = from_float(swish(sum[4 * j + 1] + bias_lo, scale));
            o[8] = from_float(swish(sum[4 * j + 2] + bias_hi, scale));
            o[OUT_LD + 8] = from_float(swish(sum[4 * j + 3] + bias_hi, scale));
        }
    }
    consumer_sync();

    // Everybody here has read the partial sums; the last of the four blocks clears the counter for the next launch.
    if (t == 0) {
        const unsigned old = atomicAdd(counters + tile, 0x100u);
        if (old == SPLIT + (SPLIT - 1) * 0x100u) atomicExch(counters + tile, 0u);
    }

    constexpr int ROWS_PER_RANK = BB / SPLIT;
#pragma unroll
    for (int i = 0; i < ROWS_PER_RANK * (BF / 8) / CONSUMERS; ++i) {
        const int e = t + CONSUMERS * i;
        const int r = e / (BF / 8), c = (e % (BF / 8)) * 8;
        const int64_t out_row = b0 + rank * ROWS_PER_RANK + r, out_col = f0 + c;
        if (out_row < rows && out_col < out_features) {
            const scalar_t* src = stage_out + r * OUT_LD + c;
            scalar_t* dst_out = output + out_row * out_features + out_col;
            if (vector_store) {
                *reinterpret_cast<uint4*>(dst_out) = *reinterpret_cast<const uint4*>(src);
            } else {
#pragma unroll
                for (int j = 0; j < 8; ++j)
                    if (out_col + j < out_features) dst_out[j] = src[j];
            }
        }
    }
}

// Any sizes and any alignment: 64 x 64 tiles, 4 x 4 outputs per thread, fp32.
__global__ void __launch_bounds__(256)
    linear_swish_any(scalar_t* __restrict__ output, const scalar_t* __restrict__ x, const scalar_t* __restrict__ weight,
                     const scalar_t* __restrict__ bias, int64_t rows, int64_t in_features, int64_t out_features,
                     float scale) {
    __shared__ float x_tile[16][65];
    __shared__ float w_tile[16][65];
    const int t = threadIdx.x, tx = t & 15, ty = t >> 4;
    const int64_t m0 = static_cast<int64_t>(blockIdx.y) * 64, n0 = static_cast<int64_t>(blockIdx.x) * 64;
    float acc[4][4] = {};
    for (int64_t k0 = 0; k0 < in_features; k0 += 16) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int e = t + 256 * i, r = e >> 4, k = e & 15;
            const bool k_ok = k0 + k < in_features;
            x_tile[k][r] = k_ok && m0 + r < rows ? to_float(x[(m0 + r) * in_features + k0 + k]) : 0.0f;
            w_tile[k][r] = k_ok && n0 + r < out_features ? to_float(weight[(n0 + r) * in_features + k0 + k]) : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            float a[4], b[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                a[i] = x_tile[k][ty + 16 * i];
                b[i] = w_tile[k][tx + 16 * i];
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
            if (row < rows && col < out_features)
                output[row * out_features + col] = from_float(swish(acc[i][j] + to_float(bias[col]), scale));
        }
}

}  // namespace

void launch_gpu_implementation(void* output, void* x, void* matmul_weight, void* matmul_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, float scaling_factor) {
    if (batch_size <= 0 || out_features <= 0) return;
    scalar_t* out = static_cast<scalar_t*>(output);
    const scalar_t* xs = static_cast<const scalar_t*>(x);
    const scalar_t* ws = static_cast<const scalar_t*>(matmul_weight);
    const scalar_t* bs = static_cast<const scalar_t*>(matmul_bias);
    const bool aligned =
        in_features % 8 == 0 && (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(matmul_weight)) % 16 == 0;
    if (aligned) {
        static bool ready = false;
        if (!ready) {
            check(cudaFuncSetAttribute(linear_swish_wgmma, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM_BYTES));
            ready = true;
        }
        const int64_t f_tiles = (out_features + BF - 1) / BF, b_tiles = (batch_size + BB - 1) / BB;
        const int64_t tiles = f_tiles * b_tiles;
        static float* scratch = nullptr;
        static unsigned* counters = nullptr;
        static int64_t capacity = 0;
        if (tiles > capacity) {
            if (scratch) check(cudaFree(scratch));
            if (counters) check(cudaFree(counters));
            check(cudaMalloc(reinterpret_cast<void**>(&scratch),
                             static_cast<size_t>(tiles) * TILE_FLOATS * sizeof(float)));
            check(cudaMalloc(reinterpret_cast<void**>(&counters), static_cast<size_t>(tiles) * sizeof(unsigned)));
            check(cudaMemsetAsync(counters, 0, static_cast<size_t>(tiles) * sizeof(unsigned)));
            capacity = tiles;
        }
        const int vector_store = out_features % 8 == 0 && reinterpret_cast<uintptr_t>(output) % 16 == 0;
        const dim3 blocks(static_cast<unsigned>(f_tiles * SPLIT), static_cast<unsigned>(b_tiles));
        linear_swish_wgmma<<<blocks, THREADS, SMEM_BYTES>>>(out, xs, ws, bs, scratch, counters, batch_size, in_features,
                                                            out_features, scaling_factor, vector_store);
    } else {
        const dim3 blocks(static_cast<unsigned>((out_features + 63) / 64),
                          static_cast<unsigned>((batch_size + 63) / 64));
        linear_swish_any<<<blocks, 256>>>(out, xs, ws, bs, batch_size, in_features, out_features, scaling_factor);
    }
    check(cudaGetLastError());
}
