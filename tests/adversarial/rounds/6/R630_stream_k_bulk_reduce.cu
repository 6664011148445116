// problem: level1/006
// precision: fp16
// kind: honest
// expects: correct and fast: stream-K: persistent blocks share all steps of all tiles evenly; cp.async in four stages, ldmatrix, mma.sync; parts of a tile are added in fp32 scratch by cp.reduce.async.bulk (in no fixed order), and who completes a tile, as a counter says, rounds and stores it. Scratch and counters are zeroed in each call. Operands whose rows are no multiples of 16 bytes are loaded by element
// size: small
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

constexpr int THREADS = 256, BM = 128, BN = 128, BK = 32, STAGES = 4, A_PITCH = BK + 8, B_PITCH = BN + 8;
constexpr int A_AREA = BM * A_PITCH, STAGE = A_AREA + BK * B_PITCH, TILE = BM * BN;
constexpr size_t PIPELINE = STAGES * STAGE * sizeof(__half), SHARED = PIPELINE > TILE * sizeof(float) ? PIPELINE : TILE * sizeof(float);

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ __forceinline__ uint32_t at(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

template <bool TRANSPOSED>
__device__ __forceinline__ void ldmatrix(uint32_t (&r)[4], const __half* p) {
    if constexpr (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at(p)) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at(p)) : "memory");
}

__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// R x C elements of a row-major matrix from (row0, column0) on, zeros outside.
template <int R, int C, bool VECTORS>
__device__ __forceinline__ void load(__half* to, const __half* from, int64_t row0, int64_t column0, int64_t rows, int64_t columns) {
#pragma unroll
    for (int i = threadIdx.x; i < R * C / 8; i += THREADS) {
        const int64_t row = row0 + i / (C / 8), column = column0 + i % (C / 8) * 8;
        __half* place = to + i / (C / 8) * (C + 8) + i % (C / 8) * 8;
        if constexpr (VECTORS) {  // a vector lies inside as a whole or not at all
            const bool inside = row < rows && column < columns;
            asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                         ::"r"(at(place)), "l"(inside ? from + row * columns + column : from), "r"(inside ? 16 : 0) : "memory");
        } else {
            alignas(16) __half e[8];
            for (int j = 0; j < 8; ++j) e[j] = row < rows && column + j < columns ? from[row * columns + column + j] : __half(0.0f);
            *reinterpret_cast<uint4*>(place) = *reinterpret_cast<const uint4*>(e);
        }
    }
}

template <bool A_VECTORS, bool B_VECTORS>
__global__ void __launch_bounds__(THREADS, 2) stream_k_kernel(__half* c, const __half* a, const __half* b, float* sums, unsigned long long* finished,
                                                              int64_t m, int64_t k, int64_t n) {
    extern __shared__ __align__(128) unsigned char memory[];
    __half* stages = reinterpret_cast<__half*>(memory);
    float* parts = reinterpret_cast<float*>(memory);  // takes the place of the stages behind the last step
    __shared__ bool last;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warp_row = warp / 4 * 64, warp_column = warp % 4 * 32;
    const int64_t across = (n + BN - 1) / BN, tiles = (m + BM - 1) / BM * across, steps = (k + BK - 1) / BK;
    // Tens of thousands of blocks times steps of all tiles stay far below 2^63.
    const int64_t end = (blockIdx.x + 1) * (tiles * steps) / gridDim.x;

    for (int64_t now = blockIdx.x * (tiles * steps) / gridDim.x; now < end;) {
        const int64_t tile = now / steps, first = now % steps, count = min(steps - first, end - now);
        const int64_t row0 = tile / across * BM, column0 = tile % across * BN;
        now += count;
        const auto fetch = [&](int64_t step) {
            if (step < count) {
                __half* stage = stages + step % STAGES * STAGE;
                load<BM, BK, A_VECTORS>(stage, a, row0, (first + step) * BK, m, k);
                load<BK, BN, B_VECTORS>(stage + A_AREA, b, (first + step) * BK, column0, k, n);
            }
            asm volatile("cp.async.commit_group;" ::: "memory");
        };
        float d[4][4][4] = {};
        for (int step = 0; step < STAGES - 1; ++step) fetch(step);
        for (int64_t step = 0; step < count; ++step) {
            asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
            __syncthreads();
            fetch(step + STAGES - 1);  // into the stage that all have read in the step before
            const __half *a_tile = stages + step % STAGES * STAGE, *b_tile = a_tile + A_AREA;
#pragma unroll
            for (int part = 0; part < BK; part += 16) {
                uint32_t x[4][4], y[2][4];
#pragma unroll
                for (int i = 0; i < 4; ++i) ldmatrix<false>(x[i], a_tile + (warp_row + i * 16 + lane % 16) * A_PITCH + part + lane / 16 * 8);
#pragma unroll
                for (int j = 0; j < 2; ++j) ldmatrix<true>(y[j], b_tile + (part + lane % 16) * B_PITCH + warp_column + j * 16 + lane / 16 * 8);
#pragma unroll
                for (int i = 0; i < 4; ++i)
#pragma unroll
                    for (int j = 0; j < 4; ++j) mma(d[i][j], x[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
            }
        }
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j)
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    *reinterpret_cast<float2*>(parts + (warp_row + i * 16 + lane / 4 + half * 8) * BN + warp_column + j * 8 + lane % 4 * 2) =
                        make_float2(d[i][j][half * 2], d[i][j][half * 2 + 1]);

        const float* result = parts;
        if (count < steps) {  // other blocks have the rest of this tile
            float* shared_sums = sums + tile * TILE;
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            __syncthreads();
            if (threadIdx.x == 0) {
                asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;"
                             ::"l"(shared_sums), "r"(at(parts)), "r"(static_cast<uint32_t>(TILE * sizeof(float))) : "memory");
                asm volatile("fence.proxy.async.global;" ::: "memory");
                __threadfence();
                last = atomicAdd(finished + tile, static_cast<unsigned long long>(count)) + count == static_cast<unsigned long long>(steps);
                __threadfence();
                asm volatile("fence.proxy.async.global;" ::: "memory");
            }
            __syncthreads();
            if (!last) continue;
            result = shared_sums;
        } else {
            __syncthreads();
        }
        for (int i = threadIdx.x; i < TILE / 4; i += THREADS) {
            const int64_t row = row0 + i / (BN / 4), column = column0 + i % (BN / 4) * 4;
            if (row >= m || column >= n) continue;
            // The sums of others come from L2, where the reductions happened.
            const float4 v = count < steps ? __ldcg(reinterpret_cast<const float4*>(result) + i) : reinterpret_cast<const float4*>(result)[i];
            const __half2 left = __floats2half2_rn(v.x, v.y), right = __floats2half2_rn(v.z, v.w);
            __half* to = c + row * n + column;
            if (n % 4 == 0) {
                *reinterpret_cast<uint2*>(to) = make_uint2(*reinterpret_cast<const uint32_t*>(&left), *reinterpret_cast<const uint32_t*>(&right));
            } else {
                to[0] = __low2half(left);
                if (column + 1 < n) to[1] = __high2half(left);
                if (column + 2 < n) to[2] = __low2half(right);
                if (column + 3 < n) to[3] = __high2half(right);
            }
        }
        __syncthreads();
    }
}

template <bool A_VECTORS, bool B_VECTORS>
static void launch(__half* c, const __half* a, const __half* b, int64_t m, int64_t k, int64_t n) {
    const auto kernel = stream_k_kernel<A_VECTORS, B_VECTORS>;
    const int64_t tiles = (m + BM - 1) / BM * ((n + BN - 1) / BN), steps = (k + BK - 1) / BK;
    const size_t wanted = static_cast<size_t>(tiles) * (TILE * sizeof(float) + sizeof(unsigned long long));
    static unsigned char* scratch = nullptr;  // sums of all tiles, then a counter for each
    static size_t capacity = 0;
    if (wanted > capacity) {
        check(cudaFree(scratch));
        check(cudaMalloc(reinterpret_cast<void**>(&scratch), wanted));
        capacity = wanted;
    }
    check(cudaMemsetAsync(scratch, 0, wanted));
    int sms = 0, per_sm = 0;
    check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(SHARED)));
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, THREADS, SHARED));
    const int64_t most = static_cast<int64_t>(sms) * per_sm, useful = (tiles * steps + 3) / 4;  // four steps at least
    kernel<<<static_cast<unsigned>(useful < most ? useful : most), THREADS, SHARED>>>(
        c, a, b, reinterpret_cast<float*>(scratch), reinterpret_cast<unsigned long long*>(scratch + tiles * TILE * sizeof(float)), m, k, n);
    check(cudaGetLastError());
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t m, int64_t k, int64_t n) {
    __half* c = static_cast<__half*>(output);
    const __half *a = static_cast<const __half*>(A), *b = static_cast<const __half*>(B);
    if (k % 8 == 0 && n % 8 == 0) launch<true, true>(c, a, b, m, k, n);
    else if (k % 8 == 0) launch<true, false>(c, a, b, m, k, n);
    else if (n % 8 == 0) launch<false, true>(c, a, b, m, k, n);
    else launch<false, false>(c, a, b, m, k, n);
}
