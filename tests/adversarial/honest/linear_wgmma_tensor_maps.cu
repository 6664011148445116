// problem: level2/86
// does: a producer warp loads 128-byte-swizzled tiles by tensor maps, two warpgroups multiply them by wgmma
// emulated: correct
// cuda: correct
// size: medium
#include <cuda.h>
#include <cuda_fp16.h>
#include <kernelblaster/scalar.cuh>

#include <cstdio>

namespace {

constexpr int BM = 128, BN = 128, BK = 64, STAGES = 4;
constexpr int TILE_BYTES = BM * BK * 2;
constexpr int THREADS = 384;  // a warpgroup that loads, two that multiply
constexpr size_t SHARED = size_t(STAGES) * 2 * TILE_BYTES + 1024 + 2 * STAGES * 8;

__device__ uint32_t shared_address(const void* p) { return uint32_t(__cvta_generic_to_shared(p)); }

__device__ void barrier_init(uint32_t barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ void barrier_expect(uint32_t barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ void barrier_arrive(uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ void barrier_wait(uint32_t barrier, uint32_t parity) {
    uint32_t done = 0;
    while (!done) {
        asm volatile(
            "{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
    }
}

__device__ void load_tile(uint32_t to, const CUtensorMap* map, int k, int row, uint32_t barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
        "l"(map), "r"(k), "r"(row), "r"(barrier)
        : "memory");
}

// K-major, swizzle of 128 bytes: eight rows are 1024 bytes apart.
__device__ uint64_t describe(uint32_t address) {
    return uint64_t((address & 0x3FFFF) >> 4) | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62;
}

__device__ void multiply(float (&d)[64], uint64_t a, uint64_t b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
        "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,"
        "%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,"
        "%59,%60,%61,%62,%63}, %64, %65, 1, 1, 1, 0, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
          "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
          "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
          "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]),
          "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]),
          "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
          "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]),
          "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        : "l"(a), "l"(b));
}

__device__ float divide_gelu(float v, float divisor) {
    v /= divisor;
    return 0.5f * v * (1.0f + erff(v * 0.7071067811865476f));
}

__global__ void __launch_bounds__(THREADS)
linear_gelu(__half* y, const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap w_map, const __half* bias,
            int64_t rows, int64_t inner, int64_t cols, float divisor) {
    extern __shared__ unsigned char raw[];
    const uint32_t start = (shared_address(raw) + 1023) / 1024 * 1024;
    const uint32_t a_tiles = start, b_tiles = start + STAGES * TILE_BYTES;
    const uint32_t full = b_tiles + STAGES * TILE_BYTES, empty = full + STAGES * 8;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            barrier_init(full + 8 * s, 1);
            barrier_init(empty + 8 * s, 2);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int steps = int((inner + BK - 1) / BK);
    const int group = threadIdx.x / 128;
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            for (int step = 0; step < steps; ++step) {
                const int s = step % STAGES;
                if (step >= STAGES) barrier_wait(empty + 8 * s, (step / STAGES - 1) & 1);
                barrier_expect(full + 8 * s, 2 * TILE_BYTES);
                load_tile(a_tiles + s * TILE_BYTES, &x_map, step * BK, row0, full + 8 * s);
                load_tile(b_tiles + s * TILE_BYTES, &w_map, step * BK, col0, full + 8 * s);
            }
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    float d[64] = {};
    const uint32_t band = uint32_t(group - 1) * 64 * BK * 2;  // each warpgroup multiplies 64 rows
    for (int step = 0; step < steps; ++step) {
        const int s = step % STAGES;
        barrier_wait(full + 8 * s, (step / STAGES) & 1);
        const uint32_t a = a_tiles + s * TILE_BYTES + band, b = b_tiles + s * TILE_BYTES;
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int k = 0; k < BK / 16; ++k) multiply(d, describe(a + k * 32), describe(b + k * 32));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        if (threadIdx.x % 128 == 0) barrier_arrive(empty + 8 * s);
    }
    const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 64; ++i) {
        const int64_t row = row0 + (group - 1) * 64 + warp * 16 + lane / 4 + i / 2 % 2 * 8;
        const int64_t col = col0 + i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (row < rows && col < cols) y[row * cols + col] = __float2half(divide_gelu(d[i] + __half2float(bias[col]), divisor));
    }
}

// For extents whose rows do not begin at 16 bytes, which a tensor map cannot describe.
__global__ void linear_gelu_plain(__half* y, const __half* x, const __half* w, const __half* bias, int64_t rows, int64_t inner,
                                  int64_t cols, float divisor) {
    __shared__ float a[16][17], b[16][17];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int64_t row = int64_t(blockIdx.y) * 16 + ty, col = int64_t(blockIdx.x) * 16 + tx;
    const int64_t weight_row = int64_t(blockIdx.x) * 16 + ty;
    float sum = 0.0f;
    for (int64_t k0 = 0; k0 < inner; k0 += 16) {
        a[ty][tx] = row < rows && k0 + tx < inner ? __half2float(x[row * inner + k0 + tx]) : 0.0f;
        b[ty][tx] = weight_row < cols && k0 + tx < inner ? __half2float(w[weight_row * inner + k0 + tx]) : 0.0f;
        __syncthreads();
        for (int k = 0; k < 16; ++k) sum += a[ty][k] * b[tx][k];
        __syncthreads();
    }
    if (row < rows && col < cols) y[row * cols + col] = __float2half(divide_gelu(sum + __half2float(bias[col]), divisor));
}

using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*,
                            const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                            CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

Encode find_encode() {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found) != cudaSuccess ||
        found != cudaDriverEntryPointSuccess) {
        std::fprintf(stderr, "no tensor maps here\n");
        return nullptr;
    }
    return reinterpret_cast<Encode>(function);
}

bool describe_matrix(Encode encode, CUtensorMap* map, void* data, int64_t rows, int64_t inner) {
    const cuuint64_t extents[] = {cuuint64_t(inner), cuuint64_t(rows)};
    const cuuint64_t strides[] = {cuuint64_t(inner) * 2};
    const cuuint32_t box[] = {BK, BM}, steps[] = {1, 1};
    return encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, data, extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                  CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

}  // namespace

void launch_gpu_implementation(void* output, void* x, void* linear_weight, void* linear_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, float divisor) {
    auto* y = static_cast<__half*>(output);
    const auto* bias = static_cast<const __half*>(linear_bias);
    if (in_features % 8 == 0) {
        static const Encode encode = find_encode();
        static const cudaError_t grown =
            cudaFuncSetAttribute(linear_gelu, cudaFuncAttributeMaxDynamicSharedMemorySize, int(SHARED));
        CUtensorMap x_map, w_map;
        if (encode != nullptr && grown == cudaSuccess && describe_matrix(encode, &x_map, x, batch_size, in_features) &&
            describe_matrix(encode, &w_map, linear_weight, out_features, in_features)) {
            linear_gelu<<<dim3(unsigned((out_features + BN - 1) / BN), unsigned((batch_size + BM - 1) / BM)), THREADS, SHARED>>>(
                y, x_map, w_map, bias, batch_size, in_features, out_features, divisor);
            return;
        }
    }
    linear_gelu_plain<<<dim3(unsigned((out_features + 15) / 16), unsigned((batch_size + 15) / 16)), dim3(16, 16)>>>(
        y, static_cast<const __half*>(x), static_cast<const __half*>(linear_weight), bias, batch_size, in_features, out_features,
        divisor);
}
