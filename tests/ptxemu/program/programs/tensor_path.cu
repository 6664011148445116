// D = A B with tiles that a tensor map or plain loads bring, and wgmma: `tensor_path CASE`, with a mistake in one place.
#include <cuda.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

constexpr int M = 64, N = 32, K = 256, BK = 64, STAGES = 2, STEPS = K / BK;
constexpr unsigned kBytes = (M + N) * BK * 2;

__device__ unsigned at(const void* shared) { return static_cast<unsigned>(__cvta_generic_to_shared(shared)); }
__device__ void init(uint64_t* bar, unsigned count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(bar)), "r"(count) : "memory"); }
__device__ void arrive(uint64_t* bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(bar)) : "memory"); }
__device__ void expect(uint64_t* bar, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(bar)), "r"(bytes) : "memory");
}
__device__ void wait(uint64_t* bar, unsigned parity) {
    asm volatile(
        "{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra AGAIN;\n}" ::"r"(at(bar)), "r"(parity)  // WAIT
        : "memory");
}
__device__ void load(void* to, const CUtensorMap* map, int k, uint64_t* bar) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(at(to)),  // LOAD
                 "l"(map), "r"(k), "r"(0), "r"(at(bar)) : "memory");  // LOAD
}
__device__ uint64_t describe(const void* tile) { return uint64_t((at(tile) & 0x3ffff) >> 4) | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62; }
__device__ void multiply(float (&d)[16], uint64_t a, uint64_t b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
        "%16, %17, 1, 1, 1, 0, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]),
          "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
        : "l"(a), "l"(b));  // MULTIPLY
}
__device__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int Left>
__device__ void finish() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Left) : "memory");  // FINISH
}
__device__ void proxy_fence() { asm volatile("fence.proxy.async;" ::: "memory"); }

enum Mistake { kNone, kTooManyBytes, kTooFewBytes, kWrongPhase, kReleasedEarly, kNoProxyFence, kNoWgmmaFence, kOverwritten, kBeyond, kMisplaced, kHalfGroup, kNeverCommitted, kNeverWaited };

__device__ void store(const float (&d)[16], float* y, int thread) {
    for (int i = 0; i < 16; ++i)
        y[(thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8) * N + i / 4 * 8 + thread % 4 * 2 + i % 2] = d[i];
}

// A producer thread, and a warpgroup that multiplies.
template <Mistake Made>
__global__ void ring(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, float* y) {
    extern __shared__ __align__(1024) __half tiles[];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    __half *a = tiles, *b = tiles + STAGES * M * BK;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) init(&full[s], 1), init(&empty[s], 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        if (threadIdx.x != 128) return;
        for (int step = 0; step < STEPS; ++step) {
            const int s = step % STAGES;
            if (step >= STAGES) wait(&empty[s], (step / STAGES + (Made == kWrongPhase ? 0 : 1)) & 1);
            expect(&full[s], kBytes + (Made == kTooManyBytes ? 16 : Made == kTooFewBytes ? -16 : 0));
            load(a + s * M * BK, &a_map, step * BK, &full[s]);
            load(b + s * N * BK, &b_map, step * BK, &full[s]);
        }
        return;
    }
    float d[16] = {};
    for (int step = 0; step < STEPS; ++step) {
        const int s = step % STAGES;
        wait(&full[s], step / STAGES & 1);
        if (Made != kNoWgmmaFence) wgmma_fence();
        for (int k = 0; k < BK; k += 16) multiply(d, describe(a + s * M * BK + k), describe(b + s * N * BK + k));
        commit();
        Made == kReleasedEarly ? finish<1>() : finish<0>();
        if (threadIdx.x == 0) arrive(&empty[s]);
    }
    finish<0>();
    store(d, y, threadIdx.x);
}

// One tile at a time, written by all threads.
template <Mistake Made>
__global__ void staged(const __half* x, const __half* w, float* y) {
    __shared__ __align__(1024) __half a[M * BK], b[N * BK];
    float d[16] = {};
    if (Made == kHalfGroup && threadIdx.x >= 64) return;
    for (int k0 = 0; k0 < K; k0 += BK) {
        for (int i = threadIdx.x; i < M * BK; i += blockDim.x) {
            const int offset = i * 2 ^ (i * 2 >> 3 & 0x70);
            a[offset / 2] = x[i / BK * K + k0 + i % BK];  // WRITE
            if (i < N * BK) b[offset / 2] = w[i / BK * K + k0 + i % BK];  // WRITE
        }
        if (Made != kNoProxyFence) proxy_fence();
        __syncthreads();
        wgmma_fence();
        for (int k = 0; k < BK; k += 16) multiply(d, describe(a + k) + (Made == kBeyond ? 3 << 10 : Made == kMisplaced ? 8 : 0), describe(b + k));
        if (Made != kNeverCommitted) commit();
        if (Made != kOverwritten && (Made != kNeverWaited || k0 + BK < K)) finish<0>();
        __syncthreads();
    }
    if (Made != kNeverWaited) finish<0>();
    store(d, y, threadIdx.x);
}

// A bulk copy of 128 bytes, of which the mbarrier expects so many more.
__global__ void copy(const __half* x, int more) {
    __shared__ __align__(128) __half tile[64];
    __shared__ uint64_t full;
    if (threadIdx.x == 0) {
        init(&full, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        expect(&full, 128 + more);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];" ::"r"(at(tile)), "l"(x), "r"(at(&full))
                     : "memory");
    }
    __syncthreads();
    wait(&full, 0);
}

CUtensorMap map_of(__half* data, int rows) {
    void* encode = nullptr;
    cudaDriverEntryPointQueryResult found{};
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found);
    const cuuint64_t extents[] = {K, cuuint64_t(rows)}, strides[] = {K * 2};
    const cuuint32_t box[] = {BK, cuuint32_t(rows)}, steps[] = {1, 1};
    CUtensorMap map;
    reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, data, extents, strides, box, steps,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return map;
}

template <class Launch>
int differing(Launch launch) {
    std::vector<__half> x(M * K), w(N * K);
    std::vector<float> y(M * N);
    for (int i = 0; i < M * K; ++i) x[i] = __float2half(float(i * 7 % 13 - 6));
    for (int i = 0; i < N * K; ++i) w[i] = __float2half(float(i * 5 % 11 - 5));
    __half *dx, *dw;
    float* dy;
    cudaMalloc(&dx, M * K * 2), cudaMalloc(&dw, N * K * 2), cudaMalloc(&dy, M * N * 4);
    cudaMemcpy(dx, x.data(), M * K * 2, cudaMemcpyHostToDevice);
    cudaMemcpy(dw, w.data(), N * K * 2, cudaMemcpyHostToDevice);
    launch(dx, dw, dy);
    if (const cudaError_t error = cudaDeviceSynchronize()) return std::puts(cudaGetErrorName(error)), 3;
    cudaMemcpy(y.data(), dy, M * N * 4, cudaMemcpyDeviceToHost);
    int wrong = 0;
    for (int i = 0; i < M * N; ++i) {
        float sum = 0;
        for (int k = 0; k < K; ++k) sum += __half2float(x[i / N * K + k]) * __half2float(w[i % N * K + k]);
        wrong += sum != y[i];
    }
    std::printf("%d wrong\n", wrong);
    return wrong != 0;
}

template <Mistake Made>
int run_ring() {
    return differing([](__half* x, __half* w, float* y) { ring<Made><<<1, 256, STAGES * kBytes>>>(map_of(x, M), map_of(w, N), y); });
}
template <Mistake Made>
int run_staged() {
    return differing([](__half* x, __half* w, float* y) { staged<Made><<<1, 128>>>(x, w, y); });
}

int run_copy(int more) {
    return differing([=](__half* x, __half*, float*) { copy<<<1, 32>>>(x, more); });
}

int main(int, char** arguments) {
    const auto is = [&](const char* name) { return std::strcmp(arguments[1], name) == 0; };
    if (is("ring")) return run_ring<kNone>();
    if (is("staged")) return run_staged<kNone>();
    if (is("too_many_bytes")) return run_ring<kTooManyBytes>();
    if (is("too_few_bytes")) return run_ring<kTooFewBytes>();
    if (is("copy_too_many_bytes")) return run_copy(16);
    if (is("copy_too_few_bytes")) return run_copy(-16);
    if (is("wrong_phase")) return run_ring<kWrongPhase>();
    if (is("released_early")) return run_ring<kReleasedEarly>();
    if (is("no_wgmma_fence")) return run_ring<kNoWgmmaFence>();
    if (is("no_proxy_fence")) return run_staged<kNoProxyFence>();
    if (is("overwritten")) return run_staged<kOverwritten>();
    if (is("half_group")) return run_staged<kHalfGroup>();
    if (is("misplaced")) return run_staged<kMisplaced>();
    if (is("beyond")) return run_staged<kBeyond>();
    if (is("never_committed")) return run_staged<kNeverCommitted>();
    if (is("never_waited")) return run_staged<kNeverWaited>();
    return 2;
}
