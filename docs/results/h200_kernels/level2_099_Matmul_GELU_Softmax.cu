// KernelBlaster: level2/099, fp16, size medium
// measured speed-up over the start 65.175x (95 %: 64.866 to 65.288), 4354.70 us -> 66.82 us per call, cold L2
// device: NVIDIA H200 (sm_90)
// softmax(gelu(x W^T + b)): 128x256 tiles staged in swizzled shared memory, multiplied by wgmma with bias and gelu in
// the epilogue, then softmax in place with one block per row held in registers.
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

constexpr int TILE = 16;  // of the kernel for odd sizes

constexpr int BM = 128, BN = 256, BK = 64;  // BK * 2 bytes = one 128-byte swizzle row
constexpr int STAGES = 4;
constexpr int GEMM_THREADS = 256;  // two warpgroups, 64 rows each
constexpr int A_BYTES = BM * BK * 2, B_BYTES = BN * BK * 2, STAGE_BYTES = A_BYTES + B_BYTES;
constexpr int GEMM_SHARED = STAGES * STAGE_BYTES + 1024;  // room to align to 1024
constexpr int OUT_STRIDE = BN + 8;                        // halves; padded against bank conflicts
static_assert(BM * OUT_STRIDE * 2 <= STAGES * STAGE_BYTES, "the output tile reuses the stages");

constexpr float NEG_INF = -INFINITY;
constexpr float LOG2E = 1.4426950408889634f;

__device__ __forceinline__ float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float reciprocal_fast(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Abramowitz and Stegun 7.1.26: erfc to 1.5e-7.
__device__ __forceinline__ float gelu(float x) {
    const float z = fabsf(x) * 0.70710678f;
    const float t = reciprocal_fast(fmaf(0.3275911f, z, 1.0f));
    float p = fmaf(1.061405429f, t, -1.453152027f);
    p = fmaf(p, t, 1.421413741f);
    p = fmaf(p, t, -0.284496736f);
    p = fmaf(p, t, 0.254829592f);
    const float erfc = p * t * exp2_fast(-LOG2E * z * z);
    const float half_tail = 0.5f * x * erfc;
    return x >= 0.0f ? x - half_tail : half_tail;
}

__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, offset));
    return value;
}

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffff, value, offset);
    return value;
}

// Every thread of the block receives the maximum.
__device__ __forceinline__ float block_max(float value) {
    __shared__ float partial[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    value = warp_max(value);
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    return warp_max(lane < warps ? partial[lane] : NEG_INF);
}

// Every thread of the block receives the sum. Called once per kernel, as block_max: no barrier after the reads.
__device__ __forceinline__ float block_sum(float value) {
    __shared__ float partial[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    value = warp_sum(value);
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    return warp_sum(lane < warps ? partial[lane] : 0.0f);
}

__device__ __forceinline__ void copy_async(uint32_t destination, const void* source) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(destination), "l"(source) : "memory");
}

// K-major operand, 128-byte swizzle, 8-row groups 1024 bytes apart.
__device__ __forceinline__ uint64_t operand(uint32_t address) {
    return static_cast<uint64_t>((address & 0x3ffff) >> 4) | (static_cast<uint64_t>(1) << 16) |
           (static_cast<uint64_t>(1024 >> 4) << 32) | (static_cast<uint64_t>(1) << 62);
}

// d[64][256] += a[64][16] * b[256][16]^T
__device__ __forceinline__ void multiply(float (&d)[128], uint64_t a, uint64_t b) {
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
          "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]),
          "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]),
          "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]),
          "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]),
          "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
        : "l"(a), "l"(b), "r"(1));
}

// Needs in_features % 64 == 0 and out_features % 8 == 0; rows and columns may end inside a tile.
__global__ void __launch_bounds__(GEMM_THREADS, 1) linear_gelu_wgmma_kernel(
    scalar_t* output, const scalar_t* x, const scalar_t* weight, const scalar_t* bias, int64_t rows,
    int64_t in_features, int64_t out_features) {
    extern __shared__ unsigned char raw[];
    const uint32_t raw_address = static_cast<uint32_t>(__cvta_generic_to_shared(raw));
    const uint32_t padding = (1024 - (raw_address & 1023)) & 1023;
    const uint32_t base = raw_address + padding;

    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32, group = thread / 128;
    const int64_t m0 = static_cast<int64_t>(blockIdx.x) * BM;
    const int64_t n0 = static_cast<int64_t>(blockIdx.y) * BN;

    // Eight threads copy the 128 bytes of a row; a row past the end reads the last one and is never stored.
    const int chunk = thread % 8, first = thread / 8;
    const uint32_t slot = first * 128 + ((chunk ^ (first & 7)) << 4);
    const scalar_t* a_source[BM / 32];
    const scalar_t* b_source[BN / 32];
#pragma unroll
    for (int i = 0; i < BM / 32; ++i) {
        int64_t row = m0 + first + 32 * i;
        if (row > rows - 1) row = rows - 1;
        a_source[i] = x + row * in_features + chunk * 8;
    }
#pragma unroll
    for (int i = 0; i < BN / 32; ++i) {
        int64_t row = n0 + first + 32 * i;
        if (row > out_features - 1) row = out_features - 1;
        b_source[i] = weight + row * in_features + chunk * 8;
    }

    auto load = [&](int k) {
        const uint32_t a_tile = base + (k % STAGES) * STAGE_BYTES + slot;
        const uint32_t b_tile = a_tile + A_BYTES;
        const int64_t offset = static_cast<int64_t>(k) * BK;
#pragma unroll
        for (int i = 0; i < BM / 32; ++i) copy_async(a_tile + i * 4096, a_source[i] + offset);
#pragma unroll
        for (int i = 0; i < BN / 32; ++i) copy_async(b_tile + i * 4096, b_source[i] + offset);
    };

    const int steps = static_cast<int>(in_features / BK);
    load(0);
    asm volatile("cp.async.commit_group;" ::: "memory");
    if (steps > 1) load(1);
    asm volatile("cp.async.commit_group;" ::: "memory");

    float acc[128];
#pragma unroll
    for (int i = 0; i < 128; ++i) acc[i] = 0.0f;

    for (int k = 0; k < steps; ++k) {
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();  // step k has landed, and both warpgroups are through with step k - 2

        const uint32_t tile = base + (k % STAGES) * STAGE_BYTES;
        const uint64_t a = operand(tile + group * (64 * 128));
        const uint64_t b = operand(tile + A_BYTES);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int j = 0; j < BK / 16; ++j) multiply(acc, a + 2 * j, b + 2 * j);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");

        if (k + 2 < steps) load(k + 2);  // into the slot of step k - 2
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");  // step k - 1 is done
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < 128; ++i) asm volatile("" : "+f"(acc[i])::"memory");
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();  // the stages are free

    // Each warp owns 16 rows of the tile.
    __half* out_tile = reinterpret_cast<__half*>(raw + padding) + warp * 16 * OUT_STRIDE;
    const int quad_row = lane / 4, quad_col = (lane % 4) * 2;
#pragma unroll
    for (int j = 0; j < BN / 8; ++j) {
        const int col = j * 8 + quad_col;
        float2 shift = make_float2(0.0f, 0.0f);
        if (n0 + col < out_features) {
            shift = __half22float2(*reinterpret_cast<const __half2*>(bias + n0 + col));
        }
        *reinterpret_cast<__half2*>(out_tile + quad_row * OUT_STRIDE + col) =
            __floats2half2_rn(gelu(acc[4 * j] + shift.x), gelu(acc[4 * j + 1] + shift.y));
        *reinterpret_cast<__half2*>(out_tile + (quad_row + 8) * OUT_STRIDE + col) =
            __floats2half2_rn(gelu(acc[4 * j + 2] + shift.x), gelu(acc[4 * j + 3] + shift.y));
    }
    __syncwarp();
    const int64_t col = n0 + lane * 8;
#pragma unroll 4
    for (int i = 0; i < 16; ++i) {
        const int64_t row = m0 + warp * 16 + i;
        if (row < rows && col < out_features) {
            *reinterpret_cast<uint4*>(output + row * out_features + col) =
                *reinterpret_cast<const uint4*>(out_tile + i * OUT_STRIDE + lane * 8);
        }
    }
}

// Any size and alignment.
__global__ void linear_gelu_kernel(
    scalar_t* output, const scalar_t* x, const scalar_t* weight, const scalar_t* bias, int64_t rows,
    int64_t in_features, int64_t out_features) {
    __shared__ float x_tile[TILE][TILE];
    __shared__ float weight_tile[TILE][TILE + 1];  // padded: threads of a warp read down a column
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
        for (int i = 0; i < TILE; ++i) sum += x_tile[ty][i] * weight_tile[tx][i];
        __syncthreads();
    }
    if (row < rows && col < out_features) {
        output[row * out_features + col] = from_float(gelu(sum + to_float(bias[col])));
    }
}

// Rows of exactly 256 * 8 * VECS values, kept in registers.
template <int VECS>
__global__ void __launch_bounds__(256) softmax_vec_kernel(scalar_t* data) {
    uint4* row = reinterpret_cast<uint4*>(data + static_cast<int64_t>(blockIdx.x) * (256 * 8 * VECS)) + threadIdx.x;
    uint4 v[VECS];
#pragma unroll
    for (int i = 0; i < VECS; ++i) v[i] = row[i * 256];

    float e[VECS][8];
    float maximum = NEG_INF;
#pragma unroll
    for (int i = 0; i < VECS; ++i) {
        const __half2* h = reinterpret_cast<const __half2*>(&v[i]);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float2 f = __half22float2(h[j]);
            e[i][2 * j] = f.x;
            e[i][2 * j + 1] = f.y;
            maximum = fmaxf(maximum, fmaxf(f.x, f.y));
        }
    }
    maximum = block_max(maximum);

    float sum0 = 0.0f, sum1 = 0.0f;
#pragma unroll
    for (int i = 0; i < VECS; ++i) {
#pragma unroll
        for (int j = 0; j < 8; j += 2) {
            e[i][j] = exp2_fast((e[i][j] - maximum) * LOG2E);
            e[i][j + 1] = exp2_fast((e[i][j + 1] - maximum) * LOG2E);
            sum0 += e[i][j];
            sum1 += e[i][j + 1];
        }
    }
    const float scale = 1.0f / block_sum(sum0 + sum1);
#pragma unroll
    for (int i = 0; i < VECS; ++i) {
        __half2* h = reinterpret_cast<__half2*>(&v[i]);
#pragma unroll
        for (int j = 0; j < 4; ++j) h[j] = __floats2half2_rn(e[i][2 * j] * scale, e[i][2 * j + 1] * scale);
        row[i * 256] = v[i];
    }
}

__global__ void softmax_kernel(scalar_t* data, int64_t dim) {
    scalar_t* row = data + blockIdx.x * dim;

    float maximum = NEG_INF;
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) maximum = fmaxf(maximum, to_float(row[i]));
    maximum = block_max(maximum);

    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) sum += expf(to_float(row[i]) - maximum);
    sum = block_sum(sum);

    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) row[i] = from_float(expf(to_float(row[i]) - maximum) / sum);
}

void launch_gpu_implementation(void* output, void* x, void* linear_weight, void* linear_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features) {
    scalar_t* out = static_cast<scalar_t*>(output);
    const scalar_t* input = static_cast<const scalar_t*>(x);
    const scalar_t* weight = static_cast<const scalar_t*>(linear_weight);
    const scalar_t* bias = static_cast<const scalar_t*>(linear_bias);

    const bool aligned = (reinterpret_cast<uintptr_t>(output) | reinterpret_cast<uintptr_t>(x) |
                          reinterpret_cast<uintptr_t>(linear_weight) | reinterpret_cast<uintptr_t>(linear_bias)) %
                             16 == 0;
    if (aligned && in_features > 0 && in_features % BK == 0 && out_features % 8 == 0) {
        static bool configured = false;
        if (!configured) {
            check(cudaFuncSetAttribute(
                linear_gelu_wgmma_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, GEMM_SHARED));
            configured = true;
        }
        // Row tiles first: the blocks that share a weight tile run side by side.
        const dim3 blocks(static_cast<unsigned int>((batch_size + BM - 1) / BM),
                          static_cast<unsigned int>((out_features + BN - 1) / BN));
        linear_gelu_wgmma_kernel<<<blocks, GEMM_THREADS, GEMM_SHARED>>>(
            out, input, weight, bias, batch_size, in_features, out_features);
    } else {
        const dim3 blocks(static_cast<unsigned int>((out_features + TILE - 1) / TILE),
                          static_cast<unsigned int>((batch_size + TILE - 1) / TILE));
        linear_gelu_kernel<<<blocks, dim3(TILE, TILE)>>>(
            out, input, weight, bias, batch_size, in_features, out_features);
    }
    check(cudaGetLastError());

    const unsigned int rows = static_cast<unsigned int>(batch_size);
    if (aligned && out_features == 256 * 8 * 2) {
        softmax_vec_kernel<2><<<rows, 256>>>(out);
    } else if (aligned && out_features == 256 * 8 * 4) {
        softmax_vec_kernel<4><<<rows, 256>>>(out);
    } else {
        softmax_kernel<<<rows, 256>>>(out, out_features);
    }
    check(cudaGetLastError());
}
