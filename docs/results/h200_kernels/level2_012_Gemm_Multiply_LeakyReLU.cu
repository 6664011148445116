// KernelBlaster: level2/012, fp16, size medium
// measured speed-up over the start 65.227x (95 %: 64.755 to 65.400), 4306.02 us -> 66.02 us per call, cold L2
// device: NVIDIA H200 (sm_90)
// leaky_relu(multiplier * (x W^T + b)): 128 x 256 tiles per block (128 blocks at the timed size, one wave), 64 deep k
// steps in a four-stage cp.async ring with 128-byte swizzle, two warpgroups of m64n256k16 wgmma, fused epilogue.
#include <kernelblaster/scalar.cuh>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static_assert(sizeof(scalar_t) == 2, "written for fp16");

constexpr int BM = 128, BN = 256, BK = 64, STAGES = 4, THREADS = 256;
constexpr int A_BYTES = BM * BK * 2, B_BYTES = BN * BK * 2, STAGE_BYTES = A_BYTES + B_BYTES;
constexpr int SHARED_BYTES = STAGES * STAGE_BYTES + 1024;  // room to align the tiles to 1024 bytes
constexpr int OUT_STRIDE = BN + 8;                         // halves per row of the staged output: no bank conflicts
static_assert(BM * OUT_STRIDE * 2 <= STAGES * STAGE_BYTES, "staged output fits");

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

// Zero-fills when bytes is 0.
__device__ __forceinline__ void copy_async_16(uint32_t shared, const void* global, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared), "l"(global), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

template <int PENDING>
__device__ __forceinline__ void copy_wait() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(PENDING) : "memory");
}

// K-major operand, 128-byte swizzle: groups of 8 rows are 1024 bytes apart.
__device__ __forceinline__ uint64_t descriptor(uint32_t shared) {
    return static_cast<uint64_t>((shared & 0x3FFFFu) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);
}

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }

__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory"); }

template <int PENDING>
__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(PENDING) : "memory");
}

__device__ __forceinline__ void wgmma_m64n256k16(float (&d)[128], uint64_t a, uint64_t b) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %130, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, "
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
        "%120, %121, %122, %123, %124, %125, %126, %127"
        "}, %128, %129, p, 1, 1, 0, 0;\n"
        "}\n"
        :
          "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
          "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]),
          "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
          "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]),
          "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]),
          "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]),
          "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]),
          "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]),
          "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]),
          "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
        : "l"(a), "l"(b), "r"(1));
}

__device__ __forceinline__ float activate(float value, float multiplier, float negative_slope) {
    value *= multiplier;
    return value > 0.0f ? value : value * negative_slope;
}

// in_features is a multiple of 8, so that every row of x and weight starts at 16 bytes.
__global__ void __launch_bounds__(THREADS, 1)
linear_wgmma_kernel(scalar_t* __restrict__ output, const scalar_t* __restrict__ x,
                    const scalar_t* __restrict__ weight, const scalar_t* __restrict__ bias, int64_t rows,
                    int64_t in_features, int64_t out_features, float multiplier, float negative_slope) {
    extern __shared__ unsigned char shared_bytes[];
    __shared__ float bias_tile[BN];

    const uint32_t raw = static_cast<uint32_t>(__cvta_generic_to_shared(shared_bytes));
    const uint32_t aligned = (raw + 1023u) & ~1023u;
    unsigned char* const tile_bytes = shared_bytes + (aligned - raw);

    const int tid = threadIdx.x, lane = tid % 32, group = tid / 128;
    const int64_t m0 = static_cast<int64_t>(blockIdx.x) * BM, n0 = static_cast<int64_t>(blockIdx.y) * BN;

    bias_tile[tid] = n0 + tid < out_features ? to_float(bias[n0 + tid]) : 0.0f;

    // This thread copies 16-byte chunk `chunk` of rows row0 + 32 j: 4 rows of x, 8 rows of weight.
    const int chunk = tid % 8, row0 = tid / 8;
    const uint32_t offset = static_cast<uint32_t>(row0 * 128 + ((chunk ^ (row0 & 7)) << 4));
    const scalar_t* const x_source = x + (m0 + row0) * in_features + chunk * 8;
    const scalar_t* const weight_source = weight + (n0 + row0) * in_features + chunk * 8;
    const int64_t row_step = in_features * 32;
    uint32_t valid = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) valid |= (m0 + row0 + 32 * j < rows ? 1u : 0u) << j;
#pragma unroll
    for (int j = 0; j < 8; ++j) valid |= (n0 + row0 + 32 * j < out_features ? 1u : 0u) << (4 + j);

    const int steps = static_cast<int>((in_features + BK - 1) / BK);

    auto load = [&](int step) {
        const int64_t k0 = static_cast<int64_t>(step) * BK;
        const uint32_t base = aligned + static_cast<uint32_t>(step % STAGES) * STAGE_BYTES + offset;
        const uint32_t mask = k0 + chunk * 8 < in_features ? valid : 0u;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const bool ok = (mask >> j) & 1u;
            copy_async_16(base + j * 4096, ok ? x_source + j * row_step + k0 : x, ok ? 16 : 0);
        }
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const bool ok = (mask >> (4 + j)) & 1u;
            copy_async_16(base + A_BYTES + j * 4096, ok ? weight_source + j * row_step + k0 : weight, ok ? 16 : 0);
        }
    };

    float acc[128];
#pragma unroll
    for (int i = 0; i < 128; ++i) acc[i] = 0.0f;

#pragma unroll
    for (int s = 0; s < STAGES; ++s) {
        if (s < steps) load(s);
        copy_commit();
    }

#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        // One commit per k step: four before the loop, then one in each step from the third on.
        if (step == 0) {
            copy_wait<3>();
        } else if (step == 1) {
            copy_wait<2>();
        } else {
            copy_wait<1>();
        }
        asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
        __syncthreads();

        const uint32_t base = aligned + static_cast<uint32_t>(step % STAGES) * STAGE_BYTES;
        const uint64_t a = descriptor(base + group * 8192);
        const uint64_t b = descriptor(base + A_BYTES);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < BK / 16; ++k) wgmma_m64n256k16(acc, a + 2 * k, b + 2 * k);
        wgmma_commit();

        // Both warpgroups finished step - 2 before the barrier above: its stage is free.
        if (step >= 2) {
            if (step + 2 < steps) load(step + 2);
            copy_commit();
        }
        wgmma_wait<1>();
    }
    wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < 128; ++i) asm volatile("" : "+f"(acc[i])::"memory");
    copy_wait<0>();
    __syncthreads();

    // Bias, scaling and leaky ReLU in fp32, then through shared memory for 16-byte stores.
    __half* const staged = reinterpret_cast<__half*>(tile_bytes);
    const int local_row = (tid / 32) * 16 + lane / 4;
#pragma unroll
    for (int j = 0; j < BN / 8; ++j) {
        const int col = j * 8 + (lane % 4) * 2;
        const float b0 = bias_tile[col], b1 = bias_tile[col + 1];
        *reinterpret_cast<__half2*>(staged + local_row * OUT_STRIDE + col) =
            __floats2half2_rn(activate(acc[4 * j] + b0, multiplier, negative_slope),
                              activate(acc[4 * j + 1] + b1, multiplier, negative_slope));
        *reinterpret_cast<__half2*>(staged + (local_row + 8) * OUT_STRIDE + col) =
            __floats2half2_rn(activate(acc[4 * j + 2] + b0, multiplier, negative_slope),
                              activate(acc[4 * j + 3] + b1, multiplier, negative_slope));
    }
    __syncthreads();

    const int64_t col = n0 + lane * 8;
    if (out_features % 8 == 0) {
#pragma unroll 4
        for (int r = tid / 32; r < BM; r += THREADS / 32) {
            if (m0 + r < rows && col < out_features) {
                *reinterpret_cast<uint4*>(output + (m0 + r) * out_features + col) =
                    *reinterpret_cast<const uint4*>(staged + r * OUT_STRIDE + lane * 8);
            }
        }
    } else {
        for (int r = tid / 32; r < BM; r += THREADS / 32) {
            if (m0 + r < rows) {
                for (int c = lane; c < BN; c += 32) {
                    if (n0 + c < out_features) {
                        output[(m0 + r) * out_features + n0 + c] = staged[r * OUT_STRIDE + c];
                    }
                }
            }
        }
    }
}

// Rows that are not aligned to 16 bytes: plain 16 x 16 tiles.
constexpr int TILE = 16;

__global__ void linear_general_kernel(scalar_t* output, const scalar_t* x, const scalar_t* weight,
                                      const scalar_t* bias, int64_t rows, int64_t in_features, int64_t out_features,
                                      float multiplier, float negative_slope) {
    __shared__ float x_tile[TILE][TILE];
    __shared__ float weight_tile[TILE][TILE + 1];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int64_t row = static_cast<int64_t>(blockIdx.y) * TILE + ty;
    const int64_t col = static_cast<int64_t>(blockIdx.x) * TILE + tx;
    const int64_t weight_row = static_cast<int64_t>(blockIdx.x) * TILE + ty;

    float sum = 0.0f;
    for (int64_t k0 = 0; k0 < in_features; k0 += TILE) {
        const int64_t k = k0 + tx;
        x_tile[ty][tx] = row < rows && k < in_features ? to_float(x[row * in_features + k]) : 0.0f;
        weight_tile[ty][tx] =
            weight_row < out_features && k < in_features ? to_float(weight[weight_row * in_features + k]) : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; ++i) sum += x_tile[ty][i] * weight_tile[tx][i];
        __syncthreads();
    }
    if (row < rows && col < out_features) {
        output[row * out_features + col] =
            from_float(activate(sum + to_float(bias[col]), multiplier, negative_slope));
    }
}

void launch_gpu_implementation(void* output, void* x, void* gemm_weight, void* gemm_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, float multiplier,
                               float negative_slope) {
    if (batch_size <= 0 || out_features <= 0) return;
    scalar_t* out = static_cast<scalar_t*>(output);
    const scalar_t* in = static_cast<const scalar_t*>(x);
    const scalar_t* weight = static_cast<const scalar_t*>(gemm_weight);
    const scalar_t* bias = static_cast<const scalar_t*>(gemm_bias);

    const int64_t n_tiles = (out_features + BN - 1) / BN;
    if (in_features > 0 && in_features % 8 == 0 && n_tiles <= 65535) {
        static bool ready = false;
        if (!ready) {
            check(cudaFuncSetAttribute(reinterpret_cast<const void*>(&linear_wgmma_kernel),
                                       cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
            ready = true;
        }
        // Row tiles vary fastest: blocks that share a weight tile run together.
        const dim3 blocks(static_cast<unsigned int>((batch_size + BM - 1) / BM), static_cast<unsigned int>(n_tiles));
        linear_wgmma_kernel<<<blocks, THREADS, SHARED_BYTES>>>(out, in, weight, bias, batch_size, in_features,
                                                               out_features, multiplier, negative_slope);
    } else {
        const dim3 blocks(static_cast<unsigned int>((out_features + TILE - 1) / TILE),
                          static_cast<unsigned int>((batch_size + TILE - 1) / TILE));
        linear_general_kernel<<<blocks, dim3(TILE, TILE)>>>(out, in, weight, bias, batch_size, in_features,
                                                            out_features, multiplier, negative_slope);
    }
    check(cudaGetLastError());
}
