// problem: level1/089
// precision: fp16
// kind: honest
// expects: correct and fast: single-pass scan with decoupled look-back along each row; persistent blocks draw tickets, bulk copies (mbarrier, evict-first policy) bring the next tile in while one is scanned, and take results out; status words and the ticket are zeroed in each call. Tiles are cut at multiples of 16 bytes, whatever the row length is
// size: small
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

constexpr int THREADS = 128, TILE = THREADS * 8;
using Word = unsigned long long;  // of a tile: 0, or 1 and its own sum, or 2 and the sum of its row up to its end
constexpr Word OWN = 1ull << 32, PREFIX = 2ull << 32;

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ __forceinline__ uint32_t at(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ __forceinline__ void publish(Word* word, Word flag, float sum) {
    // Flag and sum are one word, so that nothing else needs an order.
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(flag | __float_as_uint(sum)) : "memory");
}

__device__ __forceinline__ Word inspect(const Word* word) {
    Word value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}

__device__ __forceinline__ float warp_sum(float v) {
    for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(~0u, v, offset);
    return v;
}

// The sum of the `before` tiles of the row in front of the tile whose word is given; by one warp, 32 tiles at a time.
__device__ float look_back(const Word* word, int64_t before) {
    const int lane = threadIdx.x % 32;
    float carry = 0.0f;
    for (int64_t distance = lane + 1;; distance += 32) {
        Word seen;
        unsigned prefixes, needed;
        while (true) {
            seen = distance <= before ? inspect(word - distance) : PREFIX;  // in front of the row: a prefix of 0
            prefixes = __ballot_sync(~0u, (seen >> 32) == 2);
            needed = prefixes != 0 ? (prefixes & (0u - prefixes)) * 2u - 1u : ~0u;  // up to the nearest prefix
            if ((__ballot_sync(~0u, (seen >> 32) == 0) & needed) == 0) break;
            __nanosleep(20);
        }
        carry += warp_sum(needed >> lane & 1 ? __uint_as_float(static_cast<unsigned>(seen)) : 0.0f);
        if (prefixes != 0) return carry;
    }
}

// Where a tile lies: elements [low, high) of the tensor, within the TILE ones from `first`, a multiple of 8, on.
struct Span {
    int64_t row, place, first, low, high;
    __device__ Span(int64_t tile, int64_t per_row, int64_t dim) {
        row = tile / per_row, place = tile % per_row;
        first = row * dim / 8 * 8 + place * TILE;
        low = max(first, row * dim), high = min(first + TILE, (row + 1) * dim);
    }
};

// Thread 0 brings in all whole vectors of a tile; the tensor's last elements, fewer than 8, are not among them.
__device__ void fetch(__half* buffer, uint64_t* arrived, const __half* x, Span span, int64_t whole, uint64_t policy) {
    const int64_t end = min((span.high + 7) / 8 * 8, whole);
    const uint32_t bytes = end > span.first ? static_cast<uint32_t>(end - span.first) * 2 : 0;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(arrived)), "r"(bytes) : "memory");
    if (bytes == 0) return;
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;"
                 ::"r"(at(buffer)), "l"(x + span.first), "r"(bytes), "r"(at(arrived)), "l"(policy) : "memory");
}

__global__ void __launch_bounds__(THREADS) scan_kernel(__half* output, const __half* x, Word* words, Word* ticket,
                                                       int64_t tiles, int64_t per_row, int64_t dim, int64_t total) {
    __shared__ alignas(128) __half loaded[2][TILE];
    __shared__ alignas(128) __half results[TILE];
    __shared__ uint64_t arrived[2];
    __shared__ int64_t drawn[2];
    __shared__ float warp_totals[THREADS / 32], carried;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t whole = total / 8 * 8;
    uint64_t policy = 0;
    if (threadIdx.x == 0) {
        asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
        for (int i = 0; i < 2; ++i) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(arrived + i)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
        drawn[0] = static_cast<int64_t>(atomicAdd(ticket, 1ull));
        if (drawn[0] < tiles) fetch(loaded[0], arrived, x, Span(drawn[0], per_row, dim), whole, policy);
    }

    for (int64_t turn = 0;; ++turn) {
        const int now = turn & 1;
        __syncthreads();
        const int64_t tile = drawn[now];
        if (tile >= tiles) break;
        if (threadIdx.x == 0) {
            // A block works on its lower ticket first: who holds the lowest one never waits.
            const int64_t next = static_cast<int64_t>(atomicAdd(ticket, 1ull));
            drawn[now ^ 1] = next;
            if (next < tiles) fetch(loaded[now ^ 1], arrived + (now ^ 1), x, Span(next, per_row, dim), whole, policy);
        }
        uint32_t done;
        do {
            asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                         : "=r"(done) : "r"(at(arrived + now)), "r"(static_cast<uint32_t>(turn >> 1 & 1)) : "memory");
        } while (!done);

        const Span span(tile, per_row, dim);
        const int64_t mine = span.first + threadIdx.x * 8;
        alignas(16) __half v[8];
        if (mine < span.high && mine + 8 <= whole) {
            *reinterpret_cast<uint4*>(v) = *reinterpret_cast<const uint4*>(loaded[now] + threadIdx.x * 8);
        } else {
            for (int i = 0; i < 8; ++i) v[i] = mine + i < span.high ? x[mine + i] : __half(0.0f);
        }
        float sums[8], sum = 0.0f;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            if (mine + i >= span.low && mine + i < span.high) sum += __half2float(v[i]);
            sums[i] = sum;
        }
        float inclusive = sum;
        for (int offset = 1; offset < 32; offset *= 2) {
            const float other = __shfl_up_sync(~0u, inclusive, offset);
            if (lane >= offset) inclusive += other;
        }
        // Not inclusive - sum: an infinite element would leave a NaN.
        float before = __shfl_up_sync(~0u, inclusive, 1);
        if (lane == 0) before = 0.0f;
        if (lane == 31) warp_totals[warp] = inclusive;
        if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  // `results` may be rewritten
        __syncthreads();
        float in_front = 0.0f, own = 0.0f;
        for (int i = 0; i < THREADS / 32; ++i) {
            if (i == warp) in_front = own;
            own += warp_totals[i];
        }
        if (warp == 0) {
            if (lane == 0) publish(words + tile, span.place == 0 ? PREFIX : OWN, own);
            float carry = 0.0f;
            if (span.place > 0) {
                carry = look_back(words + tile, span.place);
                if (lane == 0) publish(words + tile, PREFIX, carry + own);
            }
            if (lane == 0) carried = carry;
        }
        __syncthreads();
        before += carried + in_front;
#pragma unroll
        for (int i = 0; i < 8; ++i) v[i] = __float2half_rn(before + sums[i]);
        if (mine >= span.low && mine + 8 <= span.high) {
            *reinterpret_cast<uint4*>(results + threadIdx.x * 8) = *reinterpret_cast<const uint4*>(v);
        } else {  // a vector that other rows share, or none
            for (int i = 0; i < 8; ++i)
                if (mine + i >= span.low && mine + i < span.high) output[mine + i] = v[i];
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        const int64_t from = (span.low + 7) / 8 * 8, to = span.high / 8 * 8;
        if (threadIdx.x == 0 && from < to) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\ncp.async.bulk.commit_group;"
                         ::"l"(output + from), "r"(at(results + (from - span.first))), "r"(static_cast<uint32_t>(to - from) * 2) : "memory");
        }
    }
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    // Rows that begin between two vectors reach up to seven elements further.
    const int64_t per_row = (dim + (dim % 8 != 0 ? 7 : 0) + TILE - 1) / TILE, tiles = batch_size * per_row;
    const size_t wanted = static_cast<size_t>(tiles + 1) * sizeof(Word);
    static Word* scratch = nullptr;  // the ticket, then a word per tile
    static size_t capacity = 0;
    if (wanted > capacity) {
        check(cudaFree(scratch));
        check(cudaMalloc(reinterpret_cast<void**>(&scratch), wanted));
        capacity = wanted;
    }
    check(cudaMemsetAsync(scratch, 0, wanted));
    int sms = 0, per_sm = 0;
    check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, scan_kernel, THREADS, 0));
    const int64_t most = static_cast<int64_t>(sms) * per_sm;
    scan_kernel<<<static_cast<unsigned>(tiles < most ? tiles : most), THREADS>>>(
        static_cast<__half*>(output), static_cast<const __half*>(x), scratch + 1, scratch, tiles, per_row, dim, batch_size * dim);
    check(cudaGetLastError());
}
