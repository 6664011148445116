// Bulk copies between global and shared memory beside plain ones: `bulk_copies CASE` says how many elements differ.
#include <cuda/barrier>
#include <cuda/ptx>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

constexpr int kTile = 256, kTiles = 12, kElements = kTile * kTiles, kStages = 3, kThreads = 64;
constexpr unsigned kTileBytes = kTile * sizeof(float);

__device__ unsigned at(const void* shared) { return static_cast<unsigned>(__cvta_generic_to_shared(shared)); }
__device__ void init(uint64_t* bar, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(bar)), "r"(count) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ void expect(uint64_t* bar, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(bar)), "r"(bytes) : "memory");
}
__device__ void load(void* to, const void* from, unsigned bytes, uint64_t* bar) {
    const unsigned target = at(to), barrier = at(bar);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(target), "l"(from), "r"(bytes), "r"(barrier) : "memory");  // LOAD
}
__device__ void store(void* to, const void* from, unsigned bytes) {
    const unsigned source = at(from);
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"  // STORE
                 ::"l"(to), "r"(source), "r"(bytes) : "memory");  // STORE
}
__device__ void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int N>
__device__ void drain() { asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory"); }
template <int N>
__device__ void drain_reads() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory"); }
__device__ void fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ void wait(uint64_t* bar, unsigned parity) {
    asm volatile(
        "{\n.reg .pred p;\nLOOP:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra DONE;\nbra LOOP;\nDONE:\n}"
        ::"r"(at(bar)), "r"(parity) : "memory");
}

// A ring of stages: one thread loads ahead, all double in place, one thread stores.
__global__ void ring(const float* x, float* y) {
    __shared__ alignas(128) float stage[kStages][kTile];
    __shared__ uint64_t full[kStages];
    if (threadIdx.x == 0) {
        for (uint64_t& bar : full) init(&bar, 1);
        fence();
        for (int s = 0; s < kStages; ++s) expect(&full[s], kTileBytes), load(stage[s], x + s * kTile, kTileBytes, &full[s]);
    }
    __syncthreads();
    for (int t = 0; t < kTiles; ++t) {
        const int s = t % kStages;
        wait(&full[s], t / kStages & 1);
        for (int i = threadIdx.x; i < kTile; i += kThreads) stage[s][i] *= 2;
        fence();
        __syncthreads();
        if (threadIdx.x != 0) continue;
        store(y + t * kTile, stage[s], kTileBytes);
        commit();
        if (t + kStages >= kTiles) continue;
        drain_reads<0>();
        expect(&full[s], kTileBytes);
        load(stage[s], x + (t + kStages) * kTile, kTileBytes, &full[s]);
    }
    if (threadIdx.x == 0) drain<0>();
}

// What libcu++ makes of it: the copy before the expectation, tokens, the C++ barrier.
__global__ void library(const float* x, float* y) {
    __shared__ alignas(128) float tile[kElements];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);
        cuda::device::experimental::fence_proxy_async_shared_cta();
    }
    __syncthreads();
    decltype(bar)::arrival_token token;
    if (threadIdx.x == 0) {
        cuda::device::experimental::cp_async_bulk_global_to_shared(tile, x, sizeof tile, bar);
        token = cuda::device::barrier_arrive_tx(bar, 1, sizeof tile);
    } else {
        token = bar.arrive();
    }
    bar.wait(std::move(token));
    for (int i = threadIdx.x; i < kElements; i += kThreads) tile[i] *= 2;
    cuda::device::experimental::fence_proxy_async_shared_cta();
    __syncthreads();
    if (threadIdx.x == 0) {
        cuda::device::experimental::cp_async_bulk_shared_to_global(y, tile, sizeof tile);
        cuda::device::experimental::cp_async_bulk_commit_group();
        cuda::device::experimental::cp_async_bulk_wait_group_read<0>();
    }
}

__global__ void memcpy_async(const float* x, float* y) {
    __shared__ alignas(128) float tile[kElements];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    if (threadIdx.x == 0) cuda::memcpy_async(tile, x, cuda::aligned_size_t<16>(sizeof tile), bar);
    bar.arrive_and_wait();
    for (int i = threadIdx.x; i < kElements; i += kThreads) y[i] = 2 * tile[i];
}

// One tile in, doubled by plain code, with a mistake in one place.
enum Mistake { kNone, kNoWait, kOneWarpWaits, kLoadedOver, kReused, kLeft, kNeverLoaded, kMisaligned, kBeyond };

template <Mistake M>
__global__ void tile_with(const float* x, float* y) {
    __shared__ alignas(128) float tile[kTile], result[kTile];
    __shared__ uint64_t bar, again;
    const int i = threadIdx.x;
    if (i == 0) {
        init(&bar, 1);
        init(&again, 1);
        fence();
        expect(&bar, kTileBytes);
        load(tile, x + (M == kMisaligned ? 1 : M == kBeyond ? kElements - kTile / 2 : 0), kTileBytes, &bar);
    }
    __syncthreads();
    if (M != kNoWait && (M != kOneWarpWaits || i < 32)) wait(&bar, 0);
    float sum = 0;
    for (int k = i; k < kTile; k += kThreads) sum += tile[k];  // READ
    if (M != kLoadedOver) __syncthreads();
    if (i == 0) {
        expect(&again, kTileBytes);
        load(tile, x, kTileBytes, &again);
    }
    if (M != kNeverLoaded)
        for (int k = i; k < kTile; k += kThreads) result[k] = 2 * x[k] + 0 * sum;
    fence();
    __syncthreads();
    if (i == 0) {
        store(y, result, kTileBytes);
        commit();
        if (M != kReused && M != kLeft) drain_reads<0>();
    }
    __syncthreads();
    if (M == kReused) result[i] = -1;  // REUSE
    if (i == 0 && M == kReused) drain_reads<0>();
    if (M != kNoWait && (M != kOneWarpWaits || i < 32)) wait(&again, 0);
}

template <class Kernel>
int differing(Kernel kernel, int count) {
    std::vector<float> x(kElements), y(kElements, 0);
    for (int i = 0; i < kElements; ++i) x[i] = 0.5f * i;
    float *from, *to;
    cudaMalloc(&from, kElements * sizeof(float));
    cudaMalloc(&to, kElements * sizeof(float));
    cudaMemcpy(from, x.data(), kElements * sizeof(float), cudaMemcpyHostToDevice);
    kernel<<<1, kThreads>>>(from, to);
    if (const cudaError_t error = cudaDeviceSynchronize()) return std::puts(cudaGetErrorName(error)), -1;
    cudaMemcpy(y.data(), to, count * sizeof(float), cudaMemcpyDeviceToHost);
    int wrong = 0;
    for (int i = 0; i < count; ++i) wrong += y[i] != 2 * x[i];
    std::printf("%d\n", wrong);
    return wrong;
}

int main(int, char** arguments) {
    const char* name = arguments[1];
    const auto is = [&](const char* other) { return std::strcmp(name, other) == 0; };
    if (is("ring")) return differing(ring, kElements) != 0;
    if (is("library")) return differing(library, kElements) != 0;
    if (is("memcpy_async")) return differing(memcpy_async, kElements) != 0;
    if (is("honest")) return differing(tile_with<kNone>, kTile) != 0;
    if (is("no_wait")) return differing(tile_with<kNoWait>, kTile) != 0;
    if (is("one_warp_waits")) return differing(tile_with<kOneWarpWaits>, kTile) != 0;
    if (is("loaded_over")) return differing(tile_with<kLoadedOver>, kTile) != 0;
    if (is("reused")) return differing(tile_with<kReused>, kTile) != 0;
    if (is("left")) return differing(tile_with<kLeft>, kTile) != 0;
    if (is("never_loaded")) return differing(tile_with<kNeverLoaded>, kTile) != 0;
    if (is("misaligned")) return differing(tile_with<kMisaligned>, kTile) != 0;
    if (is("beyond")) return differing(tile_with<kBeyond>, kTile) != 0;
    return 2;
}
