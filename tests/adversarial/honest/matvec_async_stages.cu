// problem: level1/4
// does: four stages of cp.async per warp, in dynamic shared memory beyond 48 KB
// emulated: correct
// cuda: correct
// size: medium
#include <cuda_pipeline.h>
#include <kernelblaster/scalar.cuh>

constexpr int WARPS = 8, STAGES = 4, VECTORS = 64;  // 16-byte vectors of A per warp and stage
constexpr int ITEMS = VECTORS * 16 / int(sizeof(scalar_t));
constexpr size_t SHARED = size_t(WARPS) * STAGES * 2 * VECTORS * 16;

__device__ float dot8(const uint4& a, const uint4& b) {
    const scalar_t *p = reinterpret_cast<const scalar_t*>(&a), *q = reinterpret_cast<const scalar_t*>(&b);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 16 / int(sizeof(scalar_t)); ++i) sum = fmaf(to_float(p[i]), to_float(q[i]), sum);
    return sum;
}

// One block per row, its warps take turns on pieces of ITEMS.
__global__ void __launch_bounds__(32 * WARPS) matvec(scalar_t* y, const scalar_t* A, const scalar_t* v, int64_t k, bool aligned) {
    extern __shared__ uint4 shared[];
    __shared__ float sums[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const scalar_t* row = A + blockIdx.x * k;
    float sum = 0.0f;
    int64_t rest = 0;
    if (aligned) {
        uint4* mine = shared + warp * STAGES * 2 * VECTORS;
        const int64_t pieces = k / ITEMS;
        const auto fetch = [&](int64_t piece, int stage) {
            if (piece < pieces) {
                uint4* to = mine + stage * 2 * VECTORS;
                for (int i = lane; i < VECTORS; i += 32) {
                    __pipeline_memcpy_async(to + i, reinterpret_cast<const uint4*>(row + piece * ITEMS) + i, 16);
                    __pipeline_memcpy_async(to + VECTORS + i, reinterpret_cast<const uint4*>(v + piece * ITEMS) + i, 16);
                }
            }
            __pipeline_commit();
        };
        for (int s = 0; s < STAGES - 1; ++s) fetch(warp + int64_t(s) * WARPS, s);
        int stage = 0;
        for (int64_t piece = warp; piece < pieces; piece += WARPS) {
            fetch(piece + int64_t(STAGES - 1) * WARPS, (stage + STAGES - 1) % STAGES);
            __pipeline_wait_prior(STAGES - 1);
            // Every lane reads what it copied itself, so that no barrier is needed.
            const uint4* from = mine + stage * 2 * VECTORS;
            for (int i = lane; i < VECTORS; i += 32) sum += dot8(from[i], from[VECTORS + i]);
            stage = (stage + 1) % STAGES;
        }
        __pipeline_wait_prior(0);
        rest = pieces * ITEMS;
    }
    for (int64_t i = rest + threadIdx.x; i < k; i += blockDim.x) sum = fmaf(to_float(row[i]), to_float(v[i]), sum);
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o);
    if (lane == 0) sums[warp] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < WARPS; ++i) sum += sums[i];
        y[blockIdx.x] = from_float(sum);
    }
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t m, int64_t k) {
    static const cudaError_t grown = cudaFuncSetAttribute(matvec, cudaFuncAttributeMaxDynamicSharedMemorySize, int(SHARED));
    const bool aligned = grown == cudaSuccess && k * sizeof(scalar_t) % 16 == 0;
    matvec<<<unsigned(m), 32 * WARPS, aligned ? SHARED : 0>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(A),
                                                              static_cast<const scalar_t*>(B), k, aligned);
}
