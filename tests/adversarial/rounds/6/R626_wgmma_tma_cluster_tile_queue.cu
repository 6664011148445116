// problem: level2/070
// precision: fp16
// kind: honest
// expects: correct and fast: warp-specialised wgmma fed by TMA with multicast in clusters of two, tiles handed out by an atomic counter (zeroed in each call) and passed on by st.async, setmaxnreg, stmatrix; rows that TMA cannot address (in_features % 8 != 0) are first copied to padded scratch by a kernel that the product overlaps (PDL)
// size: small
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
constexpr int BM = 128, BN = 128, BK = 64, STAGES = 5, SLOTS = 2, PITCH = BN + 8, WARPS = 8;  // WARPS that multiply
constexpr uint32_t A_BYTES = BM * BK * 2, B_BYTES = BN * BK * 2, STAGE_BYTES = A_BYTES + B_BYTES;
struct Control {
    uint64_t full[STAGES], empty[STAGES], tile_full[SLOTS], tile_empty[SLOTS];
    uint32_t tile[SLOTS]; };
constexpr size_t STAGING = WARPS * 16 * PITCH * 2, SHARED = 1024 + STAGES * STAGE_BYTES + STAGING + sizeof(Control);
static void check(cudaError_t status) { if (status != cudaSuccess) std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status)), std::exit(1); }
__device__ __forceinline__ uint32_t at(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ uint32_t in_block(const void* p, uint32_t rank) { uint32_t mapped; asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(at(p)), "r"(rank)); return mapped; }
__device__ __forceinline__ void bar_init(uint64_t* b, uint32_t count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(b)), "r"(count) : "memory"); }
__device__ __forceinline__ void bar_expect(uint64_t* b, uint32_t bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(b)), "r"(bytes) : "memory"); }
__device__ __forceinline__ void bar_arrive(uint64_t* b, uint32_t rank) { asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(in_block(b, rank)) : "memory"); }
__device__ __forceinline__ void bar_wait(uint64_t* b, uint32_t parity) {
    uint32_t done;
    do {
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(at(b)), "r"(parity) : "memory");
    } while (!done);
}
__device__ __forceinline__ void cluster_sync() { asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory"); }
// K-major operand, rows of 128 bytes, 128-byte swizzle: groups of eight rows are 1024 bytes apart.
__device__ __forceinline__ uint64_t descriptor(uint32_t address) { return uint64_t((address & 0x3ffff) >> 4) | (uint64_t(1) << 16) | (uint64_t(64) << 32) | (uint64_t(1) << 62); }
#define F4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define F16(i) F4(i), F4(i + 4), F4(i + 8), F4(i + 12)
__device__ __forceinline__ void wgmma(float (&d)[64], uint64_t a, uint64_t b) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
        "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,"
        "%61,%62,%63}, %64, %65, p, 1, 1, 0, 0;\n}" : F16(0), F16(16), F16(32), F16(48) : "l"(a), "l"(b), "r"(1));
}
__device__ __forceinline__ void settle(float (&d)[64]) {  // keeps the compiler from moving sums across asynchronous products
#pragma unroll
    for (int i = 0; i < 64; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
__device__ __forceinline__ float add_sigmoid(float y, float factor) { return y + factor * (1.0f / (1.0f + expf(-y))); }
__device__ __forceinline__ uint32_t pack(float a, float b) { const __half2 h = __floats2half2_rn(a, b); return *reinterpret_cast<const uint32_t*>(&h); }
__global__ void __launch_bounds__(384, 1) gemm_kernel(const __grid_constant__ CUtensorMap map_x, const __grid_constant__ CUtensorMap map_w, __half* out,
        const __half* bias, int64_t m, int64_t n, int k_tiles, uint32_t pairs, uint32_t total, uint32_t* next_tile, float factor) {
    extern __shared__ unsigned char raw[];
    const uint32_t base = (at(raw) + 1023) & ~1023u;
    unsigned char* memory = raw + (base - at(raw));
    Control* c = reinterpret_cast<Control*>(memory + STAGES * STAGE_BYTES + STAGING);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = threadIdx.x / 128;
    uint32_t rank, phase = 0;
    int stage = 0;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) bar_init(c->full + i, 1), bar_init(c->empty + i, 2 * WARPS);
        for (int i = 0; i < SLOTS; ++i) bar_init(c->tile_full + i, 1), bar_init(c->tile_empty + i, 2 * (WARPS + 1));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    cluster_sync();
    if (group == 2) {  // the producer
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 256) {
            asm volatile("griddepcontrol.wait;\nfence.proxy.async;" ::: "memory");
            for (uint32_t turn = 0;; ++turn) {
                const uint32_t slot = turn % SLOTS, parity = turn / SLOTS & 1;
                if (rank == 0) {  // draws a tile for both blocks
                    bar_wait(c->tile_empty + slot, parity ^ 1);
                    const uint32_t drawn = atomicAdd(next_tile, 1u);
                    for (uint32_t r = 0; r < 2; ++r)
                        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(in_block(c->tile + slot, r)), "r"(drawn), "r"(in_block(c->tile_full + slot, r)) : "memory");
                }
                bar_expect(c->tile_full + slot, 4);
                bar_wait(c->tile_full + slot, parity);
                const uint32_t tile = *static_cast<volatile uint32_t*>(c->tile + slot);
                bar_arrive(c->tile_empty + slot, 0);
                if (tile >= total) break;
                const int row = static_cast<int>((tile % pairs * 2 + rank) * BM), column = static_cast<int>(tile / pairs * BN + rank * (BN / 2));
                for (int k = 0; k < k_tiles; ++k) {
                    bar_wait(c->empty + stage, phase ^ 1);
                    bar_expect(c->full + stage, STAGE_BYTES);
                    const uint32_t a = base + stage * STAGE_BYTES, b = a + A_BYTES + rank * (B_BYTES / 2);
                    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(a), "l"(&map_x), "r"(k * BK), "r"(row), "r"(at(c->full + stage)) : "memory");
                    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(b), "l"(&map_w), "r"(k * BK), "r"(column), "r"(at(c->full + stage)), "h"(static_cast<uint16_t>(3)) : "memory");
                    if (++stage == STAGES) stage = 0, phase ^= 1;
                }
            }
        }
        __syncwarp();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        __half* staging = reinterpret_cast<__half*>(memory + STAGES * STAGE_BYTES) + warp * 16 * PITCH;
        for (uint32_t turn = 0;; ++turn) {
            const uint32_t slot = turn % SLOTS;
            bar_wait(c->tile_full + slot, turn / SLOTS & 1);
            const uint32_t tile = *static_cast<volatile uint32_t*>(c->tile + slot);
            __syncwarp();
            if (lane == 0) bar_arrive(c->tile_empty + slot, 0);
            if (tile >= total) break;
            float d[64] = {};
            int before = 0;
            for (int k = 0; k < k_tiles; ++k) {
                bar_wait(c->full + stage, phase);
                __syncwarp();
                const uint32_t a = base + stage * STAGE_BYTES + group * (A_BYTES / 2), b = base + stage * STAGE_BYTES + A_BYTES;
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
                for (int step = 0; step < BK / 16; ++step) wgmma(d, descriptor(a + step * 32), descriptor(b + step * 32));
                asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;" ::: "memory");
                if (k > 0 && lane < 2) bar_arrive(c->empty + before, lane);  // the stage before is free, for both blocks
                before = stage;
                if (++stage == STAGES) stage = 0, phase ^= 1;
            }
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
            settle(d);
            if (lane < 2) bar_arrive(c->empty + before, lane);  // there is at least one step
            const int64_t row0 = int64_t(tile % pairs * 2 + rank) * BM + warp * 16, column0 = int64_t(tile / pairs) * BN;
#pragma unroll
            for (int j = 0; j < 16; j += 2) {
                uint32_t v[4];
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const int64_t column = column0 + (j + h) * 8 + lane % 4 * 2;
                    const float b0 = column < n ? __half2float(bias[column]) : 0.0f, b1 = column + 1 < n ? __half2float(bias[column + 1]) : 0.0f;
                    const float* q = d + (j + h) * 4;
                    v[2 * h] = pack(add_sigmoid(q[0] + b0, factor), add_sigmoid(q[1] + b1, factor));
                    v[2 * h + 1] = pack(add_sigmoid(q[2] + b0, factor), add_sigmoid(q[3] + b1, factor));
                }
                asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at(staging + lane % 16 * PITCH + (j + lane / 16) * 8)), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]) : "memory");
            }
            __syncwarp();
            const int width = n % 8 == 0 ? 8 : 1, across = BN / width;  // elements that a thread stores at once
            for (int i = lane; i < 16 * across; i += 32) {
                const int64_t row = row0 + i / across, column = column0 + i % across * width;
                const __half* from = staging + i / across * PITCH + i % across * width;
                if (row >= m || column >= n) continue;
                if (width == 8) *reinterpret_cast<uint4*>(out + row * n + column) = *reinterpret_cast<const uint4*>(from);
                else out[row * n + column] = *from;
            }
            __syncwarp();
        }
    }
    cluster_sync();  // no block leaves while the other may still arrive at its barriers
}
// Rows of x, then those of the weight, to rows that are a multiple of 16 bytes apart.
__global__ void pad_kernel(__half* to, const __half* x, const __half* w, int64_t m, int64_t n, int64_t k, int64_t padded) {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    for (int64_t row = blockIdx.x; row < m + n; row += gridDim.x)
        for (int64_t i = threadIdx.x; i < padded; i += blockDim.x)
            to[row * padded + i] = i >= k ? __float2half(0.0f) : row < m ? x[row * k + i] : w[(row - m) * k + i];
}
__global__ void plain_kernel(__half* out, const __half* x, const __half* w, const __half* bias, int64_t m, int64_t n, int64_t k, float factor) {
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < m * n; i += int64_t(gridDim.x) * blockDim.x) {
        float sum = 0.0f;
        for (int64_t j = 0; j < k; ++j) sum += __half2float(x[i / n * k + j]) * __half2float(w[i % n * k + j]);
        out[i] = __float2half_rn(add_sigmoid(sum + __half2float(bias[i % n]), factor));
    }
}
static bool encode(void* function, CUtensorMap* map, const void* data, int64_t k, int64_t rows, int64_t pitch, uint32_t box_rows) {
    const cuuint64_t extents[2] = {cuuint64_t(k), cuuint64_t(rows)}, strides[1] = {cuuint64_t(pitch) * 2};
    const cuuint32_t box[2] = {BK, box_rows}, steps[2] = {1, 1};
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, const_cast<void*>(data), extents, strides,
        box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}
void launch_gpu_implementation(void* output, void* x, void* gemm_weight, void* gemm_bias, int64_t batch_size, int64_t in_features, int64_t out_features, float scaling_factor) {
    const int64_t m = batch_size, n = out_features, k = in_features, padded = (k + 7) / 8 * 8, pairs = (m + 2 * BM - 1) / (2 * BM), total = pairs * ((n + BN - 1) / BN);
    __half* out = static_cast<__half*>(output);
    const __half *from_x = static_cast<const __half*>(x), *w = static_cast<const __half*>(gemm_weight), *bias = static_cast<const __half*>(gemm_bias);
    static unsigned char* scratch = nullptr;  // the tile counter, then padded copies of x and the weight where they are needed
    static size_t capacity = 0;
    const size_t wanted = 256 + (padded != k ? size_t(m + n) * padded * 2 : 0);
    if (wanted > capacity) check(cudaFree(scratch)), check(cudaMalloc(reinterpret_cast<void**>(&scratch), wanted)), capacity = wanted;
    __half* copy = reinterpret_cast<__half*>(scratch + 256);
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    const bool known = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found) == cudaSuccess && function != nullptr;
    CUtensorMap map_x, map_w;
    int sms = 0;
    check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    const int64_t limit = 2000000000;
    if (!known || k < 1 || m > limit || n > limit || k > limit || total > limit || !encode(function, &map_x, padded != k ? copy : from_x, k, m, padded, BM) ||
        !encode(function, &map_w, padded != k ? copy + m * padded : w, k, n, padded, BN / 2)) {
        plain_kernel<<<static_cast<unsigned>((m * n + 255) / 256 < limit ? (m * n + 255) / 256 : limit), 256>>>(out, from_x, w, bias, m, n, k, scaling_factor);
        return check(cudaGetLastError());
    }
    check(cudaMemsetAsync(scratch, 0, 4));
    if (padded != k) pad_kernel<<<static_cast<unsigned>(m + n < 8 * sms ? m + n : 8 * sms), 256>>>(copy, from_x, w, m, n, k, padded);
    check(cudaFuncSetAttribute(gemm_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(SHARED)));
    cudaLaunchAttribute attributes[2] = {};
    attributes[0].id = cudaLaunchAttributeClusterDimension, attributes[0].val.clusterDim = {2, 1, 1};
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization, attributes[1].val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(2 * (total < sms / 2 ? total : sms / 2))), config.blockDim = dim3(384), config.dynamicSmemBytes = SHARED;
    config.attrs = attributes, config.numAttrs = padded != k ? 2 : 1;
    check(cudaLaunchKernelEx(&config, gemm_kernel, map_x, map_w, out, bias, m, n, int((k + BK - 1) / BK), uint32_t(pairs), uint32_t(total), reinterpret_cast<uint32_t*>(scratch), scaling_factor));
}
