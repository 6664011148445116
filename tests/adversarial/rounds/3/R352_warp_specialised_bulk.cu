// problem: level1/88
// precision: fp16
// kind: honest
// expects: one warp brings tiles by bulk copies (TMA without a tensor map) into a ring of four, eight warps compute, full and empty barriers between them; must be correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

constexpr int V = 16 / sizeof(scalar_t);
union Pack {
    uint4 raw;
    scalar_t v[V];
    __device__ Pack() {}
};

constexpr int CONSUMERS = 256, T = CONSUMERS + 32, STAGES = 4, U = 4;
constexpr int TILE = CONSUMERS * V * U;  // 16 KiB
constexpr unsigned TILE_BYTES = TILE * sizeof(scalar_t);

// 0.5 x (1 + tanh u) = x / (1 + exp(-2 u)).
__device__ __forceinline__ float gelu(float v) {
    return v / (1.0f + __expf(-1.5957691f * (v + 0.044715f * v * v * v)));
}

__device__ __forceinline__ unsigned shared_address(const void* at) { return static_cast<unsigned>(__cvta_generic_to_shared(at)); }

__device__ __forceinline__ void wait(uint64_t* barrier, unsigned parity) {
    asm volatile(
        "{\n .reg .pred done;\n again:\n mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n @!done bra again;\n}"
        ::"r"(shared_address(barrier)), "r"(parity) : "memory");
}

__device__ __forceinline__ void arrive(uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

__device__ __forceinline__ void bring(void* to, const void* from, uint64_t* barrier) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(TILE_BYTES) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(shared_address(to)), "l"(from), "r"(TILE_BYTES), "r"(shared_address(barrier)) : "memory");
}

__global__ __launch_bounds__(T) void gelu_kernel(scalar_t* out, const scalar_t* x, int64_t count) {
    extern __shared__ __align__(128) unsigned char ring[];
    __shared__ __align__(8) uint64_t full[STAGES], empty[STAGES];
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(full + s)), "r"(1) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(empty + s)), "r"(CONSUMERS / 32) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();

    const int64_t tiles = count / TILE;
    if (threadIdx.x >= CONSUMERS) {
        if (threadIdx.x != CONSUMERS) return;
        int stage = 0;
        unsigned parity = 1;  // the first waits for empty stages pass at once
        for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
            wait(empty + stage, parity);
            bring(ring + stage * TILE_BYTES, x + t * TILE, full + stage);
            if (++stage == STAGES) stage = 0, parity ^= 1;
        }
        return;
    }
    int stage = 0;
    unsigned parity = 0;
    for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        wait(full + stage, parity);
        const uint4* held = reinterpret_cast<const uint4*>(ring + stage * TILE_BYTES);
        Pack p[U];
#pragma unroll
        for (int u = 0; u < U; ++u) p[u].raw = held[u * CONSUMERS + threadIdx.x];
        __syncwarp();
        if (threadIdx.x % 32 == 0) arrive(empty + stage);
#pragma unroll
        for (int u = 0; u < U; ++u) {
#pragma unroll
            for (int j = 0; j < V; ++j) p[u].v[j] = from_float(gelu(to_float(p[u].v[j])));
            __stcs(reinterpret_cast<uint4*>(out + t * TILE) + u * CONSUMERS + threadIdx.x, p[u].raw);
        }
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }
    // What is left is less than a tile.
    if (blockIdx.x == 0)
        for (int64_t i = tiles * TILE + threadIdx.x; i < count; i += CONSUMERS) out[i] = from_float(gelu(to_float(x[i])));
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const int64_t count = batch_size * dim, tiles = count / TILE;
    constexpr int bytes = STAGES * static_cast<int>(TILE_BYTES);
    int device = 0, sms = 0, per_sm = 0;
    check(cudaGetDevice(&device));
    check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    check(cudaFuncSetAttribute(gelu_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, gelu_kernel, T, bytes));
    int64_t blocks = static_cast<int64_t>(sms) * per_sm;
    if (blocks > tiles) blocks = tiles > 0 ? tiles : 1;
    gelu_kernel<<<static_cast<unsigned>(blocks), T, bytes>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), count);
    check(cudaGetLastError());
}
