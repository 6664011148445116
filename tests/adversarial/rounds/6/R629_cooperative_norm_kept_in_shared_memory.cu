// problem: level1/037
// precision: fp16
// kind: honest
// expects: correct and fast: one cooperative kernel; each block streams its chunks through a ring of bulk copies, the grid syncs, and the second pass goes backwards: what the ring still holds is not read again, what came last comes from L2; quotients are formed in place in shared memory and leave by bulk stores. Partial sums are added in a fixed order
// size: small
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace cg = cooperative_groups;
constexpr int THREADS = 512, CHUNK = THREADS * 8, SLOTS = 24;  // chunks of 8 KB, a ring of 192 KB
constexpr size_t SHARED = static_cast<size_t>(SLOTS) * CHUNK * sizeof(__half) + 128;

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ __forceinline__ uint32_t at(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

template <typename Value>
__device__ Value block_sum(Value value) {  // every thread receives it
    __shared__ Value partial[THREADS / 32];
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(~0u, value, offset);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0;
    for (int i = 0; i < THREADS / 32; ++i) value += partial[i];
    __syncthreads();
    return value;
}

// The chunks of one block: chunk i of it is number block + i * blocks of the tensor. `whole` elements are whole vectors.
struct Chunks {
    const __half* x;
    int64_t whole, count;
    __device__ Chunks(const __half* tensor, int64_t elements) : x(tensor), whole(elements / 8 * 8) {
        const int64_t all = (whole + CHUNK - 1) / CHUNK;
        count = all > blockIdx.x ? (all - blockIdx.x + gridDim.x - 1) / gridDim.x : 0;
    }
    __device__ int64_t first(int64_t i) const { return (blockIdx.x + i * gridDim.x) * CHUNK; }
    __device__ int elements(int64_t i) const { return static_cast<int>(min(static_cast<int64_t>(CHUNK), whole - first(i))); }
    __device__ void fetch(__half* ring, uint64_t* full, int64_t i, uint64_t policy) const {
        const uint32_t bytes = elements(i) * 2, bar = at(full + i % SLOTS);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;"
                     ::"r"(at(ring + i % SLOTS * CHUNK)), "l"(x + first(i)), "r"(bytes), "r"(bar), "l"(policy) : "memory");
    }
};

__device__ __forceinline__ void wait(uint64_t* bar, uint32_t parity) {
    uint32_t done;
    do {
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done) : "r"(at(bar)), "r"(parity) : "memory");
    } while (!done);
}

__global__ void __launch_bounds__(THREADS, 1) norm_kernel(__half* output, const __half* x, double* partials, int64_t elements) {
    extern __shared__ unsigned char memory[];
    __shared__ uint64_t full[SLOTS];
    __half* ring = reinterpret_cast<__half*>(memory + (128 - at(memory) % 128) % 128);
    const Chunks chunks(x, elements);
    const int64_t n = chunks.count;
    const int mine = threadIdx.x * 8;
    uint64_t stay = 0, pass = 0;
    if (threadIdx.x == 0) {
        asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(stay));
        asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(pass));
        for (int i = 0; i < SLOTS; ++i) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(full + i)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
        for (int64_t i = 0; i < n && i < SLOTS; ++i) chunks.fetch(ring, full, i, stay);
    }
    __syncthreads();

    // First pass: sums of squares. A chunk's slot is filled again with the chunk that is SLOTS further on.
    float sum = 0.0f;
    for (int64_t i = 0; i < n; ++i) {
        wait(full + i % SLOTS, i / SLOTS & 1);
        float squares = 0.0f;
        if (mine < chunks.elements(i)) {
            const uint4 vector = *reinterpret_cast<const uint4*>(ring + i % SLOTS * CHUNK + mine);
            for (uint32_t pair : {vector.x, vector.y, vector.z, vector.w}) {
                const float2 v = __half22float2(*reinterpret_cast<const __half2*>(&pair));
                squares += v.x * v.x + v.y * v.y;
            }
        }
        sum += squares;
        __syncthreads();
        if (threadIdx.x == 0 && i + SLOTS < n) chunks.fetch(ring, full, i + SLOTS, stay);
    }
    const int64_t rest = chunks.whole + threadIdx.x;  // fewer than eight elements behind the last whole vector
    const bool has_rest = blockIdx.x == 0 && rest < elements;
    if (has_rest) sum += __half2float(x[rest]) * __half2float(x[rest]);
    const double own = block_sum(static_cast<double>(sum));
    if (threadIdx.x == 0) partials[blockIdx.x] = own;
    cg::this_grid().sync();
    double squares = 0.0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += THREADS) squares += __ldcg(partials + i);
    const float norm = static_cast<float>(sqrt(block_sum(squares)));

    // Second pass, from the last chunk to the first: of those, the last SLOTS are in the ring.
    for (int64_t i = n - 1; i >= 0; --i) {
        if (i + SLOTS < n) wait(full + i % SLOTS, i / SLOTS & 1);  // two fills after the first pass's: the same parity
        if (mine < chunks.elements(i)) {
            uint4* place = reinterpret_cast<uint4*>(ring + i % SLOTS * CHUNK + mine);
            uint4 vector = *place;
            for (uint32_t* pair : {&vector.x, &vector.y, &vector.z, &vector.w}) {
                const float2 v = __half22float2(*reinterpret_cast<const __half2*>(pair));
                const __half2 quotients = __floats2half2_rn(v.x / norm, v.y / norm);
                *pair = *reinterpret_cast<const uint32_t*>(&quotients);
            }
            *place = vector;
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;\ncp.async.bulk.commit_group;"
                         ::"l"(output + chunks.first(i)), "r"(at(ring + i % SLOTS * CHUNK)), "r"(chunks.elements(i) * 2), "l"(pass) : "memory");
            if (i + 1 < n && i + 1 >= SLOTS) {  // the store before this one has left its slot, or is waited for
                asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
                chunks.fetch(ring, full, i + 1 - SLOTS, pass);
            }
        }
    }
    if (has_rest) output[rest] = __float2half_rn(__half2float(x[rest]) / norm);
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Where blocks cannot wait for each other: three kernels.
__global__ void __launch_bounds__(THREADS) partial_kernel(double* partials, const __half* x, int64_t elements) {
    float sum = 0.0f;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x; i < elements; i += static_cast<int64_t>(gridDim.x) * THREADS)
        sum += __half2float(x[i]) * __half2float(x[i]);
    const double own = block_sum(static_cast<double>(sum));
    if (threadIdx.x == 0) partials[blockIdx.x] = own;
}

__global__ void __launch_bounds__(THREADS) divide_kernel(__half* output, const __half* x, const double* partials, int64_t elements) {
    double squares = 0.0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += THREADS) squares += partials[i];
    const float norm = static_cast<float>(sqrt(block_sum(squares)));
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x; i < elements; i += static_cast<int64_t>(gridDim.x) * THREADS)
        output[i] = __float2half_rn(__half2float(x[i]) / norm);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t features, int64_t dim1, int64_t dim2) {
    int64_t elements = batch_size * features * dim1 * dim2;
    __half* out = static_cast<__half*>(output);
    const __half* in = static_cast<const __half*>(x);
    int sms = 0, cooperative = 0, per_sm = 0;
    check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    check(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0));
    check(cudaFuncSetAttribute(norm_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(SHARED)));
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, norm_kernel, THREADS, SHARED));
    const int64_t most = static_cast<int64_t>(sms) * (per_sm > 0 ? per_sm : 4), wanted = (elements + CHUNK - 1) / CHUNK;
    const unsigned blocks = static_cast<unsigned>(wanted < most ? wanted : most);
    static double* partials = nullptr;  // written anew in each call
    static unsigned capacity = 0;
    if (blocks > capacity) {
        check(cudaFree(partials));
        check(cudaMalloc(reinterpret_cast<void**>(&partials), blocks * sizeof(double)));
        capacity = blocks;
    }
    if (cooperative != 0 && per_sm > 0) {
        void* arguments[] = {&out, &in, &partials, &elements};
        check(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(norm_kernel), dim3(blocks), dim3(THREADS), arguments, SHARED, nullptr));
        return;
    }
    partial_kernel<<<blocks, THREADS>>>(partials, in, elements);
    check(cudaGetLastError());
    divide_kernel<<<blocks, THREADS>>>(out, in, partials, elements);
    check(cudaGetLastError());
}
