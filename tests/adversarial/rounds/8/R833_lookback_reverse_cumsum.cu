// problem: level1/91
// precision: bf16
// kind: honest
// expects: single-pass suffix sums by decoupled look-back: blocks draw tiles by a ticket from the end of each row, scan
// expects: them with cub::BlockScan, publish aggregate and inclusive sum as one 64-bit word each, and warp 0 looks back
// expects: over 32 predecessors at a time. Waits on other blocks (safe, since tickets are drawn in order). Status words
// expects: are cleared in each call. Should be accepted.
// size: small
#include <kernelblaster/scalar.cuh>

#include <cub/block/block_scan.cuh>
#include <cuda/atomic>

#include <cstdio>
#include <cstdlib>

namespace {

constexpr int NTHREADS = 64, ITEMS = 8, TILE = NTHREADS * ITEMS;

void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

// A status word: what it holds in the upper half, an fp32 sum in the lower one. Cleared memory holds NOTHING.
using Word = unsigned long long;
constexpr unsigned NOTHING = 0, AGGREGATE = 1, INCLUSIVE = 2;

__device__ __forceinline__ void publish(Word* word, unsigned kind, float sum) {
    cuda::atomic_ref<Word, cuda::thread_scope_device> shared(*word);
    shared.store(static_cast<Word>(kind) << 32 | __float_as_uint(sum), cuda::std::memory_order_relaxed);
}

__device__ __forceinline__ Word observe(Word* word) {
    cuda::atomic_ref<Word, cuda::thread_scope_device> shared(*word);
    return shared.load(cuda::std::memory_order_relaxed);
}

struct Add {
    __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};

// What all tiles before `turn` in the same row sum to; by one warp, all lanes receive it.
__device__ float look_back(Word* row_words, int turn) {
    const int lane = threadIdx.x % 32;
    float sum = 0.0f;
    for (int nearest = turn - 1; nearest >= 0; nearest -= 32) {
        const int mine = nearest - lane;
        Word word = static_cast<Word>(INCLUSIVE) << 32;  // before the first tile: zero
        if (mine >= 0) {
            while (static_cast<unsigned>((word = observe(row_words + mine)) >> 32) == NOTHING) __nanosleep(20);
        }
        __syncwarp();
        const unsigned complete = __ballot_sync(0xffffffffu, static_cast<unsigned>(word >> 32) == INCLUSIVE);
        const int stop = complete != 0 ? __ffs(complete) - 1 : 31;
        float part = lane <= stop ? __uint_as_float(static_cast<unsigned>(word)) : 0.0f;
#pragma unroll
        for (int offset = 16; offset > 0; offset /= 2) part += __shfl_xor_sync(0xffffffffu, part, offset);
        sum += part;
        if (complete != 0) break;
    }
    return sum;
}

template <bool WIDE>
__global__ void __launch_bounds__(NTHREADS)
    suffix_sum_kernel(scalar_t* __restrict__ output, const scalar_t* __restrict__ x, int64_t dim, int tiles, Word* words,
                      unsigned* tickets) {
    using Scan = cub::BlockScan<float, NTHREADS>;
    __shared__ typename Scan::TempStorage storage;
    __shared__ unsigned drawn;
    __shared__ float carried;

    if (threadIdx.x == 0) drawn = atomicAdd(tickets, 1u);
    __syncthreads();
    const int64_t row = drawn / static_cast<unsigned>(tiles);
    const int turn = static_cast<int>(drawn % static_cast<unsigned>(tiles));
    Word* row_words = words + row * tiles;

    // The first turn is the row's last tile, and the first thread has its last elements.
    const int64_t base = static_cast<int64_t>(tiles - 1 - turn) * TILE + (NTHREADS - 1 - static_cast<int>(threadIdx.x)) * ITEMS;
    const scalar_t* from = x + row * dim + base;
    union Packed {
        uint4 whole;
        unsigned short bits[ITEMS];
    };
    float sums[ITEMS];
    Packed packed;
    if (WIDE && base + ITEMS <= dim) {
        packed.whole = __ldcs(reinterpret_cast<const uint4*>(from));
    } else {
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) packed.bits[i] = base + i < dim ? __bfloat16_as_ushort(from[i]) : 0;
    }
    float running = 0.0f;
#pragma unroll
    for (int i = ITEMS - 1; i >= 0; --i) {
        running += __uint_as_float(static_cast<unsigned>(packed.bits[i]) << 16);
        sums[i] = running;
    }

    float before, aggregate;
    Scan(storage).ExclusiveScan(running, before, 0.0f, Add(), aggregate);

    if (threadIdx.x < 32) {
        if (threadIdx.x == 0) publish(row_words + turn, turn == 0 ? INCLUSIVE : AGGREGATE, aggregate);
        float carry = 0.0f;
        if (turn != 0) {
            carry = look_back(row_words, turn);
            if (threadIdx.x == 0) publish(row_words + turn, INCLUSIVE, carry + aggregate);
        }
        if (threadIdx.x == 0) carried = carry;
    }
    __syncthreads();
    before += carried;

    scalar_t* to = output + row * dim + base;
    if (WIDE && base + ITEMS <= dim) {
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) packed.bits[i] = __bfloat16_as_ushort(from_float(before + sums[i]));
        __stcs(reinterpret_cast<uint4*>(to), packed.whole);
    } else {
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            if (base + i < dim) to[i] = from_float(before + sums[i]);
        }
    }
}

void* scratch(size_t bytes) {
    static void* memory = nullptr;
    static size_t size = 0;
    if (bytes > size) {
        check(cudaFree(memory));
        check(cudaMalloc(&memory, bytes));
        size = bytes;
    }
    return memory;
}

}  // namespace

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    static_assert(sizeof(scalar_t) == 2, "for bf16");
    if (batch_size <= 0 || dim <= 0) return;
    const int64_t tiles = (dim + TILE - 1) / TILE;
    // Rows are taken in portions, each small enough for a 32-bit ticket and a grid.
    const int64_t portion = tiles > 1073741824 ? 1 : 1073741824 / tiles;
    for (int64_t first = 0; first < batch_size; first += portion) {
        const int64_t rows = batch_size - first < portion ? batch_size - first : portion;
        const size_t word_bytes = static_cast<size_t>(rows * tiles) * sizeof(Word), bytes = word_bytes + 16;
        char* memory = static_cast<char*>(scratch(bytes));
        check(cudaMemsetAsync(memory, 0, bytes));
        scalar_t* to = static_cast<scalar_t*>(output) + first * dim;
        const scalar_t* from = static_cast<const scalar_t*>(x) + first * dim;
        const bool wide = dim % ITEMS == 0 &&
                          (reinterpret_cast<uintptr_t>(output) | reinterpret_cast<uintptr_t>(x)) % 16 == 0;
        const auto kernel = wide ? suffix_sum_kernel<true> : suffix_sum_kernel<false>;
        kernel<<<static_cast<unsigned>(rows * tiles), NTHREADS>>>(to, from, dim, static_cast<int>(tiles),
                                                                  reinterpret_cast<Word*>(memory),
                                                                  reinterpret_cast<unsigned*>(memory + word_bytes));
        check(cudaGetLastError());
    }
}
