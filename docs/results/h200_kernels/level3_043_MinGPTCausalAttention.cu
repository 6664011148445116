// KernelBlaster: level3/043, fp16, size medium
// measured speed-up over the start 59.887x (95 %: 59.186 to 60.329), 6955.49 us -> 116.14 us per call, cold L2
// device: NVIDIA H200 (sm_90)
// Aligned shapes: projections with one cp.async producer warp group and two free-running wgmma warp groups (mbarriers,
// no block barrier in the loop), attention for heads of 65..96 with wgmma (128 queries per block). Otherwise:
// Causal attention: persistent wgmma projections (128x192x64 tiles, 5 cp.async stages that run on across tiles),
// flash attention with 4 blocks per SM (keys and values single-buffered, each prefetched half a step ahead).
// The second and third kernel are launched with programmatic stream serialization.
#include <kernelblaster/scalar.cuh>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

// ---------------------------------------------------------------------------------------------- primitives

__device__ __forceinline__ uint32_t smem_address(const void* pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void cp_async16(uint32_t target, const void* source, bool valid) {
    const int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(target), "l"(source), "r"(bytes) : "memory");
}

__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

template <int N>
__device__ __forceinline__ void cp_async_wait() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory");
}

__device__ __forceinline__ void fence_async_proxy() {
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

// Programmatic dependent launch: wait for the kernel before; let the kernel after start its blocks.
__device__ __forceinline__ void grid_wait() { asm volatile("griddepcontrol.wait;\n" ::: "memory"); }
__device__ __forceinline__ void grid_release() { asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory"); }

__device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], uint32_t address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&r)[4], uint32_t address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void mma16816(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory"); }
template <int N>
__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(N) : "memory");
}

// K-major operand, rows of 128 bytes, 128-byte swizzle, 1024 bytes from one group of 8 rows to the next.
__device__ __forceinline__ uint64_t matrix_descriptor(uint32_t address) {
    return static_cast<uint64_t>((address & 0x3FFFF) >> 4) | (uint64_t{1} << 16) | (uint64_t{64} << 32) |
           (uint64_t{1} << 62);
}

__device__ __forceinline__ void wgmma_m64n192k16(float (&d)[96], uint64_t a, uint64_t b, int accumulate) {
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
        "%96, %97, p, 1, 1, 0, 0;\n"
        "}\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
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
          "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95])
        : "l"(a), "l"(b), "r"(accumulate));
}

__device__ __forceinline__ void mbar_init(uint32_t bar, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(bar), "r"(count) : "memory");
}
__device__ __forceinline__ void mbar_arrive(uint32_t bar) {
    asm volatile("{\n.reg .b64 t;\nmbarrier.arrive.shared::cta.b64 t, [%0];\n}\n" ::"r"(bar) : "memory");
}
// Arrives once all earlier cp.async of this thread are complete.
__device__ __forceinline__ void mbar_arrive_cp_async(uint32_t bar) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];\n" ::"r"(bar) : "memory");
}
__device__ __forceinline__ void mbar_wait(uint32_t bar, uint32_t parity) {
    uint32_t done = 0;
    while (!done) {
        asm volatile(
            "{\n.reg .pred p;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n}\n"
            : "=r"(done)
            : "r"(bar), "r"(parity)
            : "memory");
    }
}

// Descriptor with 64-byte swizzle; lbo and sbo in bytes.
__device__ __forceinline__ uint64_t descriptor64(uint32_t address, uint32_t lbo, uint32_t sbo) {
    return static_cast<uint64_t>((address & 0x3FFFF) >> 4) | (static_cast<uint64_t>(lbo >> 4) << 16) |
           (static_cast<uint64_t>(sbo >> 4) << 32) | (uint64_t{2} << 62);
}

__device__ __forceinline__ void wgmma_m64n64k16(float (&d)[32], uint64_t a, uint64_t b, int accumulate) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0;\n}\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "l"(a), "l"(b), "r"(accumulate));
}

// A from registers, B stored as [k][n].
__device__ __forceinline__ void wgmma_m64n96k16_rs(float (&d)[48], const uint32_t (&a)[4], uint64_t b) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47}, {%48, %49, %50, %51}, %52, p, 1, 1, 1;\n}\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

// Transpose a 4x4 block of words in a quad of lanes: lane t then holds word t of its four partners.
__device__ __forceinline__ void quad_transpose(uint32_t (&w)[4], int lane) {
    const bool odd = lane & 1, high = lane & 2;
    uint32_t x = __shfl_xor_sync(0xffffffff, odd ? w[0] : w[1], 1);
    uint32_t y = __shfl_xor_sync(0xffffffff, odd ? w[2] : w[3], 1);
    w[0] = odd ? x : w[0];
    w[1] = odd ? w[1] : x;
    w[2] = odd ? y : w[2];
    w[3] = odd ? w[3] : y;
    x = __shfl_xor_sync(0xffffffff, high ? w[0] : w[2], 2);
    y = __shfl_xor_sync(0xffffffff, high ? w[1] : w[3], 2);
    w[0] = high ? x : w[0];
    w[2] = high ? w[2] : x;
    w[1] = high ? y : w[1];
    w[3] = high ? w[3] : y;
}

__device__ __forceinline__ float fast_exp2(float value) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(result) : "f"(value));
    return result;
}

__device__ __forceinline__ uint32_t pack_half2(float low, float high) {
    const __half2 packed = __floats2half2_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&packed);
}

// Up to eight scalars of a row, zero-filled, stored as one 16-byte chunk.
__device__ __forceinline__ void copy_chunk_scalar(void* target, const __half* source, int64_t count) {
    union {
        uint4 vector;
        unsigned short element[8];
    } chunk;
#pragma unroll
    for (int i = 0; i < 8; ++i) chunk.element[i] = i < count ? __half_as_ushort(source[i]) : (unsigned short)0;
    *reinterpret_cast<uint4*>(target) = chunk.vector;
}

template <typename... P, typename... A>
static void launch_dependent(void (*kernel)(P...), unsigned blocks, unsigned threads, size_t smem, A... arguments) {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks, 1, 1);
    config.blockDim = dim3(threads, 1, 1);
    config.dynamicSmemBytes = smem;
    config.stream = 0;
    cudaLaunchAttribute attribute[1];
    attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute[0].val.programmaticStreamSerializationAllowed = 1;
    config.attrs = attribute;
    config.numAttrs = 1;
    check(cudaLaunchKernelEx(&config, kernel, static_cast<P>(arguments)...));
}

// ---------------------------------------------------------------------------------------------- linear layer

constexpr int BM = 128, BN = 192, BK = 64, STAGES = 5, AHEAD = STAGES - 2;
constexpr int GEMM_THREADS = 256;
constexpr int A_BYTES = BM * BK * 2, B_BYTES = BN * BK * 2, STAGE_BYTES = A_BYTES + B_BYTES;
constexpr int EPILOGUE_STRIDE = 104;  // halves of a 96-wide row of a warp tile, padded to 13 chunks
constexpr int GEMM_SMEM = STAGES * STAGE_BYTES + 8 * 16 * EPILOGUE_STRIDE * 2 + 1024;
static_assert(GEMM_SMEM <= 232448, "shared memory");

// output[rows, n] = x[rows, k] * weight[n, k]^T + bias[n]; 2 warp groups of 64x192.
template <bool VEC>
__global__ void __launch_bounds__(GEMM_THREADS, 1) linear_wgmma_kernel(
    __half* __restrict__ output, const __half* __restrict__ x, const __half* __restrict__ weight,
    const __half* __restrict__ bias, int64_t rows, int in_features, int out_features, int tiles_n, int tiles,
    bool vector_store) {
    extern __shared__ __align__(1024) unsigned char gemm_smem[];
    const uint32_t raw_base = smem_address(gemm_smem);
    const uint32_t pad = (1024u - (raw_base & 1023u)) & 1023u;
    unsigned char* smem = gemm_smem + pad;
    const uint32_t smem_base = raw_base + pad;

    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, group = warp >> 2;
    const int k_tiles = (in_features + BK - 1) / BK;

    // The stream of loads: all k tiles of all output tiles of this block.
    const int load_row = tid >> 3, load_chunk = tid & 7;
    const uint32_t load_offset = load_row * 128 + ((load_chunk ^ (load_row & 7)) << 4);
    const int64_t step32 = static_cast<int64_t>(32) * in_features;
    int ld_tile = blockIdx.x, ld_k = 0, ld_slot = 0;
    int rows_left = 0, cols_left = 0;
    const __half* x_source = x;
    const __half* w_source = weight;

    auto open_tile = [&]() {
        if (ld_tile < tiles) {
            const int64_t row = static_cast<int64_t>(ld_tile / tiles_n) * BM + load_row;
            const int64_t col = static_cast<int64_t>(ld_tile % tiles_n) * BN + load_row;
            const int64_t left = rows - row;
            rows_left = left < BM ? static_cast<int>(left) : BM;
            cols_left = out_features - static_cast<int>(col);
            x_source = x + row * in_features + load_chunk * 8;
            w_source = weight + col * in_features + load_chunk * 8;
        }
    };
    auto load_next = [&]() {
        if (ld_tile < tiles) {
            const int k0 = ld_k * BK;
            const int k_left = in_features - k0 - load_chunk * 8;
            const uint32_t a_offset = ld_slot * STAGE_BYTES + load_offset;
            const uint32_t b_offset = a_offset + A_BYTES;
            if (VEC) {
#pragma unroll
                for (int i = 0; i < BM / 32; ++i) {
                    const bool valid = k_left > 0 && i * 32 < rows_left;
                    cp_async16(smem_base + a_offset + i * 4096, valid ? x_source + i * step32 + k0 : x, valid);
                }
#pragma unroll
                for (int i = 0; i < BN / 32; ++i) {
                    const bool valid = k_left > 0 && i * 32 < cols_left;
                    cp_async16(smem_base + b_offset + i * 4096, valid ? w_source + i * step32 + k0 : weight, valid);
                }
            } else {
                for (int i = 0; i < BM / 32; ++i) {
                    copy_chunk_scalar(smem + a_offset + i * 4096, x_source + i * step32 + k0,
                                      i * 32 < rows_left ? k_left : 0);
                }
                for (int i = 0; i < BN / 32; ++i) {
                    copy_chunk_scalar(smem + b_offset + i * 4096, w_source + i * step32 + k0,
                                      i * 32 < cols_left ? k_left : 0);
                }
            }
            ld_slot = ld_slot + 1 == STAGES ? 0 : ld_slot + 1;
            if (++ld_k == k_tiles) {
                ld_k = 0;
                ld_tile += gridDim.x;
                open_tile();
            }
        }
        cp_async_commit();
    };

    grid_wait();
    grid_release();
    open_tile();
#pragma unroll 1
    for (int s = 0; s < AHEAD; ++s) load_next();

    float acc[96];
#pragma unroll
    for (int i = 0; i < 96; ++i) acc[i] = 0.0f;

    __half* staging = reinterpret_cast<__half*>(smem + STAGES * STAGE_BYTES) + warp * 16 * EPILOGUE_STRIDE;
    const int row_in_warp = lane >> 2, pair = (lane & 3) * 2;

    int slot = 0;
#pragma unroll 1
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
#pragma unroll 1
        for (int kt = 0; kt < k_tiles; ++kt) {
            cp_async_wait<AHEAD - 1>();
            fence_async_proxy();
            __syncthreads();
            const uint32_t stage = smem_base + slot * STAGE_BYTES;
            const uint64_t a_desc = matrix_descriptor(stage + group * 8192);
            const uint64_t b_desc = matrix_descriptor(stage + A_BYTES);
            wgmma_fence();
#pragma unroll
            for (int kk = 0; kk < BK / 16; ++kk) {
                wgmma_m64n192k16(acc, a_desc + kk * 2, b_desc + kk * 2, (kt > 0 || kk > 0) ? 1 : 0);
            }
            wgmma_commit();
            // The slot written here was read two steps ago; every warp group has waited for that step.
            load_next();
            wgmma_wait<1>();
            slot = slot + 1 == STAGES ? 0 : slot + 1;
        }
        wgmma_wait<0>();
#pragma unroll
        for (int i = 0; i < 96; ++i) asm volatile("" : "+f"(acc[i])::"memory");

        // Epilogue: each warp stages its 16 rows in two halves of 96 columns; the next loads are under way.
        const int64_t row_base = static_cast<int64_t>(tile / tiles_n) * BM + warp * 16;
        const int col_tile = (tile % tiles_n) * BN;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int col_base = col_tile + h * 96;
#pragma unroll
            for (int j = 0; j < 12; ++j) {
                const int col = col_base + j * 8 + pair;
                float bias0 = 0.0f, bias1 = 0.0f;
                if (vector_store) {
                    if (col < out_features) {
                        const float2 b = __half22float2(*reinterpret_cast<const __half2*>(bias + col));
                        bias0 = b.x;
                        bias1 = b.y;
                    }
                } else {
                    if (col < out_features) bias0 = __half2float(bias[col]);
                    if (col + 1 < out_features) bias1 = __half2float(bias[col + 1]);
                }
                const int at = (h * 12 + j) * 4;
                __half* target = staging + row_in_warp * EPILOGUE_STRIDE + j * 8 + pair;
                *reinterpret_cast<uint32_t*>(target) = pack_half2(acc[at] + bias0, acc[at + 1] + bias1);
                *reinterpret_cast<uint32_t*>(target + 8 * EPILOGUE_STRIDE) =
                    pack_half2(acc[at + 2] + bias0, acc[at + 3] + bias1);
            }
            __syncwarp();
            if (vector_store) {  // out_features is a multiple of 8 and the output is aligned
#pragma unroll
                for (int i = 0; i < 6; ++i) {
                    const int index = lane + i * 32;
                    const int r = index / 12, c = (index % 12) * 8;
                    if (row_base + r < rows && col_base + c < out_features) {
                        *reinterpret_cast<uint4*>(output + (row_base + r) * out_features + col_base + c) =
                            *reinterpret_cast<const uint4*>(staging + r * EPILOGUE_STRIDE + c);
                    }
                }
            } else {
                for (int index = lane; index < 16 * 96; index += 32) {
                    const int r = index / 96, c = index % 96;
                    if (row_base + r < rows && col_base + c < out_features) {
                        output[(row_base + r) * out_features + col_base + c] = staging[r * EPILOGUE_STRIDE + c];
                    }
                }
            }
            __syncwarp();
        }
    }
    cp_async_wait<0>();
}

static bool aligned16(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

static int multiprocessors() {
    static int count = 0;
    if (count == 0) {
        int device = 0;
        check(cudaGetDevice(&device));
        check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
    }
    return count;
}

template <bool VEC>
static void linear_launch(__half* output, const __half* x, const __half* weight, const __half* bias, int64_t rows,
                          int64_t in_features, int64_t out_features, bool vector_store, bool dependent) {
    const int64_t tiles_m = (rows + BM - 1) / BM, tiles_n = (out_features + BN - 1) / BN;
    const int64_t tiles = tiles_m * tiles_n;
    const int64_t sms = multiprocessors();
    const unsigned blocks = static_cast<unsigned>(tiles < sms ? tiles : sms);
    check(cudaFuncSetAttribute(linear_wgmma_kernel<VEC>, cudaFuncAttributeMaxDynamicSharedMemorySize, GEMM_SMEM));
    if (dependent) {
        launch_dependent(linear_wgmma_kernel<VEC>, blocks, GEMM_THREADS, GEMM_SMEM, output, x, weight, bias, rows,
                         static_cast<int>(in_features), static_cast<int>(out_features), static_cast<int>(tiles_n),
                         static_cast<int>(tiles), vector_store);
    } else {
        linear_wgmma_kernel<VEC><<<blocks, GEMM_THREADS, GEMM_SMEM>>>(
            output, x, weight, bias, rows, static_cast<int>(in_features), static_cast<int>(out_features),
            static_cast<int>(tiles_n), static_cast<int>(tiles), vector_store);
    }
    check(cudaGetLastError());
}

// Aligned shapes: warp group 0 loads (cp.async, swizzled), warp groups 1 and 2 multiply 64x192 each, unsynchronised.
constexpr int WS_THREADS = 384;
constexpr int WS_SMEM = STAGES * STAGE_BYTES + 128 + 1024;

__global__ void __launch_bounds__(WS_THREADS, 1) linear_ws_kernel(
    __half* __restrict__ output, const __half* __restrict__ x, const __half* __restrict__ weight,
    const __half* __restrict__ bias, int64_t rows, int in_features, int out_features, int tiles_n, int tiles) {
    extern __shared__ __align__(1024) unsigned char gemm_smem[];
    const uint32_t smem_base = (smem_address(gemm_smem) + 1023u) & ~1023u;
    const uint32_t full = smem_base + STAGES * STAGE_BYTES, empty = full + STAGES * 8;
    const int tid = threadIdx.x, lane = tid & 31, group = tid >> 7;
    const int k_tiles = (in_features + BK - 1) / BK;

    if (tid == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mbar_init(full + s * 8, 128);
            mbar_init(empty + s * 8, 8);
        }
        asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
    }
    __syncthreads();
    grid_wait();
    grid_release();

    int slot = 0;
    uint32_t phase = 0;
    if (group == 0) {
        const int load_row = tid >> 3, load_chunk = tid & 7;
        const uint32_t load_offset = load_row * 128 + ((load_chunk ^ (load_row & 7)) << 4);
        const int64_t step16 = static_cast<int64_t>(16) * in_features;
#pragma unroll 1
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            const int64_t row = static_cast<int64_t>(tile / tiles_n) * BM + load_row;
            const int64_t col = static_cast<int64_t>(tile % tiles_n) * BN + load_row;
            const int64_t left = rows - row;
            const int rows_left = left < BM ? static_cast<int>(left) : BM;
            const int cols_left = out_features - static_cast<int>(col);
            const __half* x_source = x + row * in_features + load_chunk * 8;
            const __half* w_source = weight + col * in_features + load_chunk * 8;
            int k_left = in_features - load_chunk * 8;
#pragma unroll 1
            for (int kt = 0; kt < k_tiles; ++kt) {
                mbar_wait(empty + slot * 8, phase ^ 1u);
                const uint32_t a_target = smem_base + slot * STAGE_BYTES + load_offset;
                const uint32_t b_target = a_target + A_BYTES;
#pragma unroll
                for (int i = 0; i < BM / 16; ++i) {
                    const bool valid = k_left > 0 && i * 16 < rows_left;
                    cp_async16(a_target + i * 2048, valid ? x_source + i * step16 : x, valid);
                }
#pragma unroll
                for (int i = 0; i < BN / 16; ++i) {
                    const bool valid = k_left > 0 && i * 16 < cols_left;
                    cp_async16(b_target + i * 2048, valid ? w_source + i * step16 : weight, valid);
                }
                mbar_arrive_cp_async(full + slot * 8);
                x_source += BK;
                w_source += BK;
                k_left -= BK;
                if (++slot == STAGES) {
                    slot = 0;
                    phase ^= 1u;
                }
            }
        }
        cp_async_commit();
        cp_async_wait<0>();
    } else {
        const int consumer = group - 1, warp = (tid >> 5) & 3;
        float acc[96];
#pragma unroll
        for (int i = 0; i < 96; ++i) acc[i] = 0.0f;
        // The second group starts later, so that one multiplies while the other one stores.
        if (consumer == 1) asm volatile("bar.sync 1, 256;\n" ::: "memory");
        bool first = true;
#pragma unroll 1
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            int previous = 0;
#pragma unroll 1
            for (int kt = 0; kt < k_tiles; ++kt) {
                mbar_wait(full + slot * 8, phase);
                fence_async_proxy();
                const uint32_t stage = smem_base + slot * STAGE_BYTES;
                const uint64_t a_desc = matrix_descriptor(stage + consumer * 8192);
                const uint64_t b_desc = matrix_descriptor(stage + A_BYTES);
                wgmma_fence();
#pragma unroll
                for (int kk = 0; kk < BK / 16; ++kk) {
                    wgmma_m64n192k16(acc, a_desc + kk * 2, b_desc + kk * 2, (kt > 0 || kk > 0) ? 1 : 0);
                }
                wgmma_commit();
                wgmma_wait<1>();
                if (kt > 0 && lane == 0) mbar_arrive(empty + previous * 8);
                previous = slot;
                if (++slot == STAGES) {
                    slot = 0;
                    phase ^= 1u;
                }
                if (first && (kt == 1 || kt + 1 == k_tiles)) {
                    if (consumer == 0) asm volatile("bar.arrive 1, 256;\n" ::: "memory");
                    first = false;
                }
            }
            wgmma_wait<0>();
            if (lane == 0) mbar_arrive(empty + previous * 8);
#pragma unroll
            for (int i = 0; i < 96; ++i) asm volatile("" : "+f"(acc[i])::"memory");

            const int64_t row0 =
                static_cast<int64_t>(tile / tiles_n) * BM + consumer * 64 + warp * 16 + (lane >> 2);
            const int col_tile = (tile % tiles_n) * BN;
#pragma unroll
            for (int g = 0; g < 6; ++g) {
                uint32_t w0[4], w1[4];
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int col = col_tile + (g * 4 + i) * 8 + (lane & 3) * 2;
                    float2 b = make_float2(0.0f, 0.0f);
                    if (col < out_features) b = __half22float2(*reinterpret_cast<const __half2*>(bias + col));
                    const int at = (g * 4 + i) * 4;
                    w0[i] = pack_half2(acc[at] + b.x, acc[at + 1] + b.y);
                    w1[i] = pack_half2(acc[at + 2] + b.x, acc[at + 3] + b.y);
                }
                quad_transpose(w0, lane);
                quad_transpose(w1, lane);
                const int col = col_tile + (g * 4 + (lane & 3)) * 8;
                if (col < out_features) {
                    if (row0 < rows) {
                        *reinterpret_cast<uint4*>(output + row0 * out_features + col) =
                            make_uint4(w0[0], w0[1], w0[2], w0[3]);
                    }
                    if (row0 + 8 < rows) {
                        *reinterpret_cast<uint4*>(output + (row0 + 8) * out_features + col) =
                            make_uint4(w1[0], w1[1], w1[2], w1[3]);
                    }
                }
            }
        }
    }
}

static void linear_ws_launch(__half* output, const __half* x, const __half* weight, const __half* bias, int64_t rows,
                             int64_t in_features, int64_t out_features, bool dependent) {
    const int64_t tiles_n = (out_features + BN - 1) / BN, tiles = (rows + BM - 1) / BM * tiles_n;
    const int64_t sms = multiprocessors();
    const unsigned blocks = static_cast<unsigned>(tiles < sms ? tiles : sms);
    check(cudaFuncSetAttribute(linear_ws_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, WS_SMEM));
    if (dependent) {
        launch_dependent(linear_ws_kernel, blocks, WS_THREADS, WS_SMEM, output, x, weight, bias, rows,
                         static_cast<int>(in_features), static_cast<int>(out_features), static_cast<int>(tiles_n),
                         static_cast<int>(tiles));
    } else {
        linear_ws_kernel<<<blocks, WS_THREADS, WS_SMEM>>>(output, x, weight, bias, rows,
                                                          static_cast<int>(in_features),
                                                          static_cast<int>(out_features), static_cast<int>(tiles_n),
                                                          static_cast<int>(tiles));
    }
    check(cudaGetLastError());
}

static void linear(__half* output, const __half* x, const __half* weight, const __half* bias, int64_t rows,
                   int64_t in_features, int64_t out_features, bool dependent) {
    const bool vector_load = in_features % 8 == 0 && aligned16(x) && aligned16(weight);
    const bool vector_store =
        out_features % 8 == 0 && aligned16(output) && reinterpret_cast<uintptr_t>(bias) % 4 == 0;
    if (vector_load && vector_store) {
        linear_ws_launch(output, x, weight, bias, rows, in_features, out_features, dependent);
    } else if (vector_load) {
        linear_launch<true>(output, x, weight, bias, rows, in_features, out_features, vector_store, dependent);
    } else {
        linear_launch<false>(output, x, weight, bias, rows, in_features, out_features, vector_store, dependent);
    }
}

// ---------------------------------------------------------------------------------------------- attention

constexpr int TILE_Q = 64, TILE_KV = 64, ATTENTION_THREADS = 128;

template <int HD>
constexpr int attention_smem() {
    return (TILE_Q + 2 * TILE_KV) * (HD + 8) * 2;
}

// One block per (query tile, sample, head); 4 warps of 16 queries; head size padded with zeros to HD.
template <int HD, bool VEC>
__global__ void __launch_bounds__(ATTENTION_THREADS, HD <= 96 ? 4 : 3) flash_kernel(
    __half* __restrict__ output, const __half* __restrict__ qkv, int seq_len, int64_t n_embd, int n_head,
    int head_size, int batch_heads, int q_tiles, float scale_log2) {
    constexpr int STRIDE = HD + 8;  // an odd number of 16-byte chunks: ldmatrix without conflicts
    constexpr int CHUNKS = HD / 8;
    extern __shared__ __align__(128) unsigned char attention_smem_bytes[];
    __half* sq = reinterpret_cast<__half*>(attention_smem_bytes);
    __half* sk = sq + TILE_Q * STRIDE;
    __half* sv = sk + TILE_KV * STRIDE;

    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    const int q_tile = q_tiles - 1 - static_cast<int>(blockIdx.x / batch_heads);  // longest first
    const int bh = static_cast<int>(blockIdx.x % batch_heads);
    const int sample = bh / n_head, head = bh % n_head;
    const int64_t row_stride = 3 * n_embd;
    const __half* q = qkv + static_cast<int64_t>(sample) * seq_len * row_stride + static_cast<int64_t>(head) * head_size;
    const __half* k = q + n_embd;
    const __half* v = k + n_embd;

    auto load_tile = [&](__half* target, const __half* source, int first_row) {
#pragma unroll
        for (int i = 0; i < 64 * CHUNKS / ATTENTION_THREADS; ++i) {
            const int index = tid + i * ATTENTION_THREADS;
            const int r = index / CHUNKS, c = (index % CHUNKS) * 8;
            const bool valid = first_row + r < seq_len && c < head_size;
            const __half* from = valid ? source + static_cast<int64_t>(first_row + r) * row_stride + c : source;
            __half* to = target + r * STRIDE + c;
            if (VEC) {
                cp_async16(smem_address(to), valid ? from : qkv, valid);
            } else {
                copy_chunk_scalar(to, from, valid ? head_size - c : 0);
            }
        }
    };

    grid_wait();
    grid_release();
    load_tile(sq, q, q_tile * TILE_Q);
    load_tile(sk, k, 0);
    cp_async_commit();
    load_tile(sv, v, 0);
    cp_async_commit();

    float o[HD / 8][4];
#pragma unroll
    for (int d = 0; d < HD / 8; ++d)
#pragma unroll
        for (int c = 0; c < 4; ++c) o[d][c] = 0.0f;
    float max0 = -INFINITY, max1 = -INFINITY, sum0 = 0.0f, sum1 = 0.0f;

    const uint32_t q_lane = smem_address(sq + (warp * 16 + (lane & 15)) * STRIDE + (lane >> 4) * 8);
    const uint32_t k_lane = smem_address(sk + ((lane & 7) + ((lane >> 4) << 3)) * STRIDE + ((lane >> 3) & 1) * 8);
    const uint32_t v_lane = smem_address(sv + (lane & 15) * STRIDE + (lane >> 4) * 8);

#pragma unroll 1
    for (int j = 0; j <= q_tile; ++j) {
        // The keys of this step are here; every warp is done with the values of the step before.
        if (j == 0) {
            cp_async_wait<1>();
        } else {
            cp_async_wait<0>();
        }
        __syncthreads();
        if (j > 0) {
            load_tile(sv, v, j * TILE_KV);
            cp_async_commit();
        }

        float s[8][4];
#pragma unroll
        for (int n = 0; n < 8; ++n)
#pragma unroll
            for (int c = 0; c < 4; ++c) s[n][c] = 0.0f;
#pragma unroll
        for (int kk = 0; kk < HD / 16; ++kk) {
            uint32_t a[4];
            ldmatrix_x4(a, q_lane + kk * 32);
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                uint32_t b[4];
                ldmatrix_x4(b, k_lane + n * 16 * STRIDE * 2 + kk * 32);
                mma16816(s[2 * n], a, b[0], b[1]);
                mma16816(s[2 * n + 1], a, b[2], b[3]);
            }
        }

        if (j == q_tile) {  // diagonal tile: both tiles start at the same index
            const int row = warp * 16 + (lane >> 2);
#pragma unroll
            for (int n = 0; n < 8; ++n) {
                const int col = n * 8 + (lane & 3) * 2;
                if (col > row) s[n][0] = -INFINITY;
                if (col + 1 > row) s[n][1] = -INFINITY;
                if (col > row + 8) s[n][2] = -INFINITY;
                if (col + 1 > row + 8) s[n][3] = -INFINITY;
            }
        }

        float new0 = max0, new1 = max1;
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            new0 = fmaxf(new0, fmaxf(s[n][0], s[n][1]));
            new1 = fmaxf(new1, fmaxf(s[n][2], s[n][3]));
        }
        new0 = fmaxf(new0, __shfl_xor_sync(0xffffffff, new0, 1));
        new0 = fmaxf(new0, __shfl_xor_sync(0xffffffff, new0, 2));
        new1 = fmaxf(new1, __shfl_xor_sync(0xffffffff, new1, 1));
        new1 = fmaxf(new1, __shfl_xor_sync(0xffffffff, new1, 2));
        const float alpha0 = fast_exp2((max0 - new0) * scale_log2), alpha1 = fast_exp2((max1 - new1) * scale_log2);
        max0 = new0;
        max1 = new1;
        const float shift0 = new0 * scale_log2, shift1 = new1 * scale_log2;
        sum0 *= alpha0;
        sum1 *= alpha1;
        uint32_t p[4][4];
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            const float p0 = fast_exp2(fmaf(s[n][0], scale_log2, -shift0));
            const float p1 = fast_exp2(fmaf(s[n][1], scale_log2, -shift0));
            const float p2 = fast_exp2(fmaf(s[n][2], scale_log2, -shift1));
            const float p3 = fast_exp2(fmaf(s[n][3], scale_log2, -shift1));
            sum0 += p0 + p1;
            sum1 += p2 + p3;
            p[n >> 1][(n & 1) * 2] = pack_half2(p0, p1);
            p[n >> 1][(n & 1) * 2 + 1] = pack_half2(p2, p3);
        }
#pragma unroll
        for (int d = 0; d < HD / 8; ++d) {
            o[d][0] *= alpha0;
            o[d][1] *= alpha0;
            o[d][2] *= alpha1;
            o[d][3] *= alpha1;
        }

        // The values of this step are here; every warp is done with its keys.
        cp_async_wait<0>();
        __syncthreads();
        if (j < q_tile) {
            load_tile(sk, k, (j + 1) * TILE_KV);
            cp_async_commit();
        }
#pragma unroll
        for (int kk = 0; kk < 4; ++kk) {
#pragma unroll
            for (int d = 0; d < HD / 16; ++d) {
                uint32_t b[4];
                ldmatrix_x4_trans(b, v_lane + kk * 16 * STRIDE * 2 + d * 32);
                mma16816(o[2 * d], p[kk], b[0], b[1]);
                mma16816(o[2 * d + 1], p[kk], b[2], b[3]);
            }
        }
    }

    sum0 += __shfl_xor_sync(0xffffffff, sum0, 1);
    sum0 += __shfl_xor_sync(0xffffffff, sum0, 2);
    sum1 += __shfl_xor_sync(0xffffffff, sum1, 1);
    sum1 += __shfl_xor_sync(0xffffffff, sum1, 2);
    const float inverse0 = 1.0f / sum0, inverse1 = 1.0f / sum1;

    // A warp stages its 16 rows where its queries were: no other warp reads them.
    __half* tile = sq + warp * 16 * STRIDE;
    __syncwarp();
#pragma unroll
    for (int d = 0; d < HD / 8; ++d) {
        __half* target = tile + (lane >> 2) * STRIDE + d * 8 + (lane & 3) * 2;
        *reinterpret_cast<uint32_t*>(target) = pack_half2(o[d][0] * inverse0, o[d][1] * inverse0);
        *reinterpret_cast<uint32_t*>(target + 8 * STRIDE) = pack_half2(o[d][2] * inverse1, o[d][3] * inverse1);
    }
    __syncwarp();
    const int first_row = q_tile * TILE_Q + warp * 16;
    __half* out = output + static_cast<int64_t>(sample) * seq_len * n_embd + static_cast<int64_t>(head) * head_size;
    if (VEC) {
#pragma unroll
        for (int i = 0; i < 16 * CHUNKS / 32; ++i) {
            const int index = lane + i * 32;
            const int r = index / CHUNKS, c = (index % CHUNKS) * 8;
            if (first_row + r < seq_len && c < head_size) {
                *reinterpret_cast<uint4*>(out + (first_row + r) * n_embd + c) =
                    *reinterpret_cast<const uint4*>(tile + r * STRIDE + c);
            }
        }
    } else {
        for (int index = lane; index < 16 * HD; index += 32) {
            const int r = index / HD, c = index % HD;
            if (first_row + r < seq_len && c < head_size) out[(first_row + r) * n_embd + c] = tile[r * STRIDE + c];
        }
    }
}

template <int HD, bool VEC>
static void flash(__half* output, const __half* qkv, int64_t batch, int64_t seq_len, int64_t n_embd, int64_t n_head) {
    const int64_t head_size = n_embd / n_head;
    const int64_t q_tiles = (seq_len + TILE_Q - 1) / TILE_Q, batch_heads = batch * n_head;
    const float scale_log2 = static_cast<float>(1.4426950408889634 / sqrt(static_cast<double>(head_size)));
    check(cudaFuncSetAttribute(flash_kernel<HD, VEC>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               attention_smem<HD>()));
    launch_dependent(flash_kernel<HD, VEC>, static_cast<unsigned>(q_tiles * batch_heads), ATTENTION_THREADS,
                     attention_smem<HD>(), output, qkv, static_cast<int>(seq_len), n_embd, static_cast<int>(n_head),
                     static_cast<int>(head_size), static_cast<int>(batch_heads), static_cast<int>(q_tiles),
                     scale_log2);
    check(cudaGetLastError());
}

// Heads of at most 96 (a multiple of 8): 2 warp groups of 64 queries, keys and values in tiles of 64, double-buffered.
// Every tile is three slabs of 32 columns: rows of 64 bytes, 64-byte swizzle.
constexpr int WG_Q = 128, WG_THREADS = 256;
constexpr int WG_Q_BYTES = WG_Q * 96 * 2, WG_KV_BYTES = 64 * 96 * 2;
constexpr int WG_SMEM = WG_Q_BYTES + 4 * WG_KV_BYTES + 1024;

__global__ void __launch_bounds__(WG_THREADS, 2) flash_wgmma_kernel(
    __half* __restrict__ output, const __half* __restrict__ qkv, int seq_len, int64_t n_embd, int n_head,
    int head_size, int batch_heads, int q_tiles, float scale_log2) {
    extern __shared__ __align__(1024) unsigned char attention_smem_bytes[];
    const uint32_t sq = (smem_address(attention_smem_bytes) + 1023u) & ~1023u;
    const uint32_t skv = sq + WG_Q_BYTES;

    const int tid = threadIdx.x, lane = tid & 31, group = tid >> 7, warp = (tid >> 5) & 3;
    const int q_tile = q_tiles - 1 - static_cast<int>(blockIdx.x / batch_heads);  // longest first
    const int bh = static_cast<int>(blockIdx.x % batch_heads);
    const int sample = bh / n_head, head = bh % n_head;
    const int64_t row_stride = 3 * n_embd;
    const __half* q = qkv + static_cast<int64_t>(sample) * seq_len * row_stride + static_cast<int64_t>(head) * head_size;
    const __half* k = q + n_embd;
    const __half* v = k + n_embd;

    auto load_rows = [&](uint32_t target, const __half* source, int first_row, int count) {
#pragma unroll
        for (int i = 0; i < 6; ++i) {
            if (i * WG_THREADS < count * 12) {
                const int index = tid + i * WG_THREADS;
                const int r = index / 12, c = index % 12;
                const bool valid = first_row + r < seq_len && c * 8 < head_size;
                cp_async16(target + (c >> 2) * (count * 64) + r * 64 + (((c & 3) ^ ((r >> 1) & 3)) << 4),
                           valid ? source + static_cast<int64_t>(first_row + r) * row_stride + c * 8 : qkv, valid);
            }
        }
    };

    grid_wait();
    grid_release();
    load_rows(sq, q, q_tile * WG_Q, WG_Q);
    load_rows(skv, k, 0, 64);
    load_rows(skv + WG_KV_BYTES, v, 0, 64);
    cp_async_commit();

    const int last = (q_tile + 1) * WG_Q < seq_len ? (q_tile + 1) * WG_Q : seq_len;
    const int kv_tiles = (last + 63) / 64;
    const int diagonal = q_tile * 2 + group;

    float o[48];
#pragma unroll
    for (int i = 0; i < 48; ++i) o[i] = 0.0f;
    float max0 = -INFINITY, max1 = -INFINITY, sum0 = 0.0f, sum1 = 0.0f;

#pragma unroll 1
    for (int j = 0; j < kv_tiles; ++j) {
        cp_async_wait<0>();
        fence_async_proxy();
        __syncthreads();  // tile j is here; every warp is done with tile j - 1
        const uint32_t stage = skv + (j & 1) * (2 * WG_KV_BYTES);
        if (j + 1 < kv_tiles) {
            const uint32_t next = skv + ((j + 1) & 1) * (2 * WG_KV_BYTES);
            load_rows(next, k, (j + 1) * 64, 64);
            load_rows(next + WG_KV_BYTES, v, (j + 1) * 64, 64);
            cp_async_commit();
        }
        if (j <= diagonal) {  // the same for a whole warp group
            float s[32];
#pragma unroll
            for (int i = 0; i < 32; ++i) s[i] = 0.0f;
            wgmma_fence();
#pragma unroll
            for (int kk = 0; kk < 6; ++kk) {
                wgmma_m64n64k16(s, descriptor64(sq + (kk >> 1) * 8192 + group * 4096 + (kk & 1) * 32, 16, 512),
                                descriptor64(stage + (kk >> 1) * 4096 + (kk & 1) * 32, 16, 512), kk > 0 ? 1 : 0);
            }
            wgmma_commit();
            wgmma_wait<0>();
#pragma unroll
            for (int i = 0; i < 32; ++i) asm volatile("" : "+f"(s[i])::"memory");

            if (j == diagonal) {
                const int row = warp * 16 + (lane >> 2);
#pragma unroll
                for (int n = 0; n < 8; ++n) {
                    const int col = n * 8 + (lane & 3) * 2;
                    if (col > row) s[n * 4] = -INFINITY;
                    if (col + 1 > row) s[n * 4 + 1] = -INFINITY;
                    if (col > row + 8) s[n * 4 + 2] = -INFINITY;
                    if (col + 1 > row + 8) s[n * 4 + 3] = -INFINITY;
                }
            }
            float new0 = max0, new1 = max1;
#pragma unroll
            for (int n = 0; n < 8; ++n) {
                new0 = fmaxf(new0, fmaxf(s[n * 4], s[n * 4 + 1]));
                new1 = fmaxf(new1, fmaxf(s[n * 4 + 2], s[n * 4 + 3]));
            }
            new0 = fmaxf(new0, __shfl_xor_sync(0xffffffff, new0, 1));
            new0 = fmaxf(new0, __shfl_xor_sync(0xffffffff, new0, 2));
            new1 = fmaxf(new1, __shfl_xor_sync(0xffffffff, new1, 1));
            new1 = fmaxf(new1, __shfl_xor_sync(0xffffffff, new1, 2));
            const float alpha0 = fast_exp2((max0 - new0) * scale_log2);
            const float alpha1 = fast_exp2((max1 - new1) * scale_log2);
            max0 = new0;
            max1 = new1;
            const float shift0 = new0 * scale_log2, shift1 = new1 * scale_log2;
            sum0 *= alpha0;
            sum1 *= alpha1;
            uint32_t p[4][4];
#pragma unroll
            for (int n = 0; n < 8; ++n) {
                const float p0 = fast_exp2(fmaf(s[n * 4], scale_log2, -shift0));
                const float p1 = fast_exp2(fmaf(s[n * 4 + 1], scale_log2, -shift0));
                const float p2 = fast_exp2(fmaf(s[n * 4 + 2], scale_log2, -shift1));
                const float p3 = fast_exp2(fmaf(s[n * 4 + 3], scale_log2, -shift1));
                sum0 += p0 + p1;
                sum1 += p2 + p3;
                p[n >> 1][(n & 1) * 2] = pack_half2(p0, p1);
                p[n >> 1][(n & 1) * 2 + 1] = pack_half2(p2, p3);
            }
#pragma unroll
            for (int d = 0; d < 12; ++d) {
                o[d * 4] *= alpha0;
                o[d * 4 + 1] *= alpha0;
                o[d * 4 + 2] *= alpha1;
                o[d * 4 + 3] *= alpha1;
            }
#pragma unroll
            for (int i = 0; i < 48; ++i) asm volatile("" : "+f"(o[i])::"memory");
            wgmma_fence();
#pragma unroll
            for (int kk = 0; kk < 4; ++kk) {
                wgmma_m64n96k16_rs(o, p[kk], descriptor64(stage + WG_KV_BYTES + kk * 1024, 4096, 512));
            }
            wgmma_commit();
            wgmma_wait<0>();
#pragma unroll
            for (int i = 0; i < 48; ++i) asm volatile("" : "+f"(o[i])::"memory");
        }
    }

    sum0 += __shfl_xor_sync(0xffffffff, sum0, 1);
    sum0 += __shfl_xor_sync(0xffffffff, sum0, 2);
    sum1 += __shfl_xor_sync(0xffffffff, sum1, 1);
    sum1 += __shfl_xor_sync(0xffffffff, sum1, 2);
    const float inverse0 = 1.0f / sum0, inverse1 = 1.0f / sum1;
    const int row0 = q_tile * WG_Q + group * 64 + warp * 16 + (lane >> 2);
    __half* out = output + static_cast<int64_t>(sample) * seq_len * n_embd + static_cast<int64_t>(head) * head_size;
#pragma unroll
    for (int g = 0; g < 3; ++g) {
        uint32_t w0[4], w1[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int at = (g * 4 + i) * 4;
            w0[i] = pack_half2(o[at] * inverse0, o[at + 1] * inverse0);
            w1[i] = pack_half2(o[at + 2] * inverse1, o[at + 3] * inverse1);
        }
        quad_transpose(w0, lane);
        quad_transpose(w1, lane);
        const int col = (g * 4 + (lane & 3)) * 8;
        if (col < head_size) {
            if (row0 < seq_len) {
                *reinterpret_cast<uint4*>(out + row0 * n_embd + col) = make_uint4(w0[0], w0[1], w0[2], w0[3]);
            }
            if (row0 + 8 < seq_len) {
                *reinterpret_cast<uint4*>(out + (row0 + 8) * n_embd + col) = make_uint4(w1[0], w1[1], w1[2], w1[3]);
            }
        }
    }
}

static void flash_wgmma(__half* output, const __half* qkv, int64_t batch, int64_t seq_len, int64_t n_embd,
                        int64_t n_head) {
    const int64_t head_size = n_embd / n_head;
    const int64_t q_tiles = (seq_len + WG_Q - 1) / WG_Q, batch_heads = batch * n_head;
    const float scale_log2 = static_cast<float>(1.4426950408889634 / sqrt(static_cast<double>(head_size)));
    check(cudaFuncSetAttribute(flash_wgmma_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, WG_SMEM));
    launch_dependent(flash_wgmma_kernel, static_cast<unsigned>(q_tiles * batch_heads), WG_THREADS, WG_SMEM, output,
                     qkv, static_cast<int>(seq_len), n_embd, static_cast<int>(n_head), static_cast<int>(head_size),
                     static_cast<int>(batch_heads), static_cast<int>(q_tiles), scale_log2);
    check(cudaGetLastError());
}

// Heads wider than 128: one warp per query and 32 output columns, two passes over the keys (online softmax).
__global__ void attention_fallback_kernel(
    __half* output, const __half* qkv, int64_t seq_len, int64_t n_embd, int64_t n_head, int64_t total,
    int64_t column_groups) {
    const int lane = threadIdx.x % 32;
    const int64_t item = static_cast<int64_t>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    if (item >= total) return;  // whole warps leave, and there is no block barrier
    const int64_t head_size = n_embd / n_head;
    const int64_t column = item % column_groups * 32 + lane;
    const int64_t query = item / column_groups % seq_len;
    const int64_t head = item / (column_groups * seq_len) % n_head;
    const int64_t sample = item / (column_groups * seq_len * n_head);
    const __half* q = qkv + (sample * seq_len + query) * 3 * n_embd + head * head_size;
    const __half* k = qkv + sample * seq_len * 3 * n_embd + n_embd + head * head_size;
    const __half* v = k + n_embd;
    const float scale = rsqrtf(static_cast<float>(head_size));
    float maximum = -INFINITY, sum = 0.0f, mixed = 0.0f;
    for (int64_t key = 0; key <= query; ++key) {
        float dot = 0.0f;
        for (int64_t i = lane; i < head_size; i += 32) {
            dot += __half2float(q[i]) * __half2float(k[key * 3 * n_embd + i]);
        }
        for (int offset = 16; offset > 0; offset /= 2) dot += __shfl_xor_sync(0xffffffff, dot, offset);
        dot *= scale;
        const float larger = fmaxf(maximum, dot);
        const float alpha = expf(maximum - larger), weight = expf(dot - larger);
        const float value = column < head_size ? __half2float(v[key * 3 * n_embd + column]) : 0.0f;
        sum = sum * alpha + weight;
        mixed = mixed * alpha + weight * value;
        maximum = larger;
    }
    if (column < head_size) {
        output[(sample * seq_len + query) * n_embd + head * head_size + column] = __float2half_rn(mixed / sum);
    }
}

// Grown on demand and kept, so that later calls allocate nothing.
static __half* workspace(int64_t count) {
    static __half* buffer = nullptr;
    static int64_t capacity = 0;
    if (count > capacity) {
        check(cudaFree(buffer));
        check(cudaMalloc(reinterpret_cast<void**>(&buffer), count * sizeof(__half)));
        capacity = count;
    }
    return buffer;
}

void launch_gpu_implementation(void* output, void* x, void* c_attn_weight, void* c_attn_bias, void* c_proj_weight,
                               void* c_proj_bias, int64_t batch_size, int64_t seq_len, int64_t n_embd,
                               int64_t n_head) {
    const int64_t rows = batch_size * seq_len;
    if (rows <= 0 || n_embd <= 0) return;
    const int64_t qkv_count = (rows * 3 * n_embd + 127) / 128 * 128;
    __half* qkv = workspace(qkv_count + rows * n_embd);
    __half* mixed = qkv + qkv_count;

    linear(qkv, static_cast<const __half*>(x), static_cast<const __half*>(c_attn_weight),
           static_cast<const __half*>(c_attn_bias), rows, n_embd, 3 * n_embd, false);

    const int64_t head_size = n_embd / n_head;
    const bool vector = head_size % 8 == 0 && n_embd % 8 == 0;
    if (head_size <= 32) {
        if (vector) flash<32, true>(mixed, qkv, batch_size, seq_len, n_embd, n_head);
        else flash<32, false>(mixed, qkv, batch_size, seq_len, n_embd, n_head);
    } else if (head_size <= 64) {
        if (vector) flash<64, true>(mixed, qkv, batch_size, seq_len, n_embd, n_head);
        else flash<64, false>(mixed, qkv, batch_size, seq_len, n_embd, n_head);
    } else if (head_size <= 96) {
        if (vector) flash_wgmma(mixed, qkv, batch_size, seq_len, n_embd, n_head);
        else flash<96, false>(mixed, qkv, batch_size, seq_len, n_embd, n_head);
    } else if (head_size <= 128) {
        if (vector) flash<128, true>(mixed, qkv, batch_size, seq_len, n_embd, n_head);
        else flash<128, false>(mixed, qkv, batch_size, seq_len, n_embd, n_head);
    } else {
        const int64_t column_groups = (head_size + 31) / 32;
        const int64_t total = rows * n_head * column_groups;
        attention_fallback_kernel<<<static_cast<unsigned>((total + 3) / 4), 128>>>(mixed, qkv, seq_len, n_embd, n_head,
                                                                                   total, column_groups);
        check(cudaGetLastError());
    }

    linear(static_cast<__half*>(output), mixed, static_cast<const __half*>(c_proj_weight),
           static_cast<const __half*>(c_proj_bias), rows, n_embd, n_embd, true);
}
