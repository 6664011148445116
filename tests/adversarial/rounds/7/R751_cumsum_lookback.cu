// problem: level1/89
// precision: fp32
// kind: honest
// expects: accepted. Single-pass scan with decoupled look-back: tile states and an atomic ticket in stream-ordered memory
//          that is allocated, zeroed and freed in each call; spins with __nanosleep; order of the prefix sums not fixed.
// size: small

// Inclusive prefix sums along rows (fp32): one persistent kernel, each element is read once and written once.
//
// Tiles are handed out by a ticket, in row-major order. A block that waits for a predecessor waits for a tile with a
// lower ticket, whose owner is therefore running already: the look-back cannot deadlock, however few blocks fit.
#include <kernelblaster/scalar.cuh>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

static_assert(std::is_same<scalar_t, float>::value, "this file is the fp32 variant");

namespace {

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;
constexpr int ITEMS = 8;
constexpr int TILE = THREADS * ITEMS;
constexpr unsigned FULL = 0xffffffffu;

using State = unsigned long long;  // flag in the upper half, bits of the float in the lower: one store publishes both
constexpr unsigned EMPTY = 0, AGGREGATE = 1, PREFIX = 2;

void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

// Stream-ordered scratch memory for one call.
class Scratch {
public:
    Scratch(size_t bytes, cudaStream_t stream) : stream_(stream) { check(cudaMallocAsync(&data_, bytes, stream)); }
    ~Scratch() { cudaFreeAsync(data_, stream_); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    template <class T>
    T* as() const { return static_cast<T*>(data_); }

private:
    void* data_ = nullptr;
    cudaStream_t stream_;
};

__device__ __forceinline__ void publish(State* slot, unsigned flag, float value) {
    const State word = static_cast<State>(flag) << 32 | __float_as_uint(value);
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(slot), "l"(word) : "memory");
}

__device__ __forceinline__ State peek(const State* slot) {
    State word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(slot) : "memory");
    return word;
}

__device__ __forceinline__ float4 load_streaming(const float* p) {
    float4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(p));
    return v;
}

// Sum of all tiles of the row before this one; called by one whole warp. `states` is the row's first slot.
__device__ float look_back(const State* states, int64_t tile, int lane) {
    float prefix = 0.0f;
    for (int64_t last = tile - 1;; last -= 32) {
        const int64_t index = last - lane;
        // What lies before the row counts as a prefix of zero.
        State word = index >= 0 ? peek(states + index) : static_cast<State>(PREFIX) << 32;
        while (__any_sync(FULL, static_cast<unsigned>(word >> 32) == EMPTY)) {
            __nanosleep(20);
            if (static_cast<unsigned>(word >> 32) == EMPTY) word = peek(states + index);
        }
        const unsigned done = __ballot_sync(FULL, static_cast<unsigned>(word >> 32) == PREFIX);
        const int nearest = done ? __ffs(done) - 1 : 31;
        float value = lane <= nearest ? __uint_as_float(static_cast<unsigned>(word)) : 0.0f;
#pragma unroll
        for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(FULL, value, offset);
        prefix += value;
        if (done) return prefix;
    }
}

__global__ void __launch_bounds__(THREADS)
cumsum_kernel(float* output, const float* x, int64_t dim, int64_t tiles_per_row, unsigned long long tiles,
              unsigned long long* ticket, State* states) {
    __shared__ float staged[TILE + TILE / ITEMS];  // one word of padding after each thread's items
    __shared__ float warp_totals[WARPS];
    __shared__ float tile_prefix;
    __shared__ unsigned long long current;
    const int t = threadIdx.x, lane = t % 32, warp = t / 32;

    for (;;) {
        if (t == 0) current = atomicAdd(ticket, 1ull);
        __syncthreads();
        const unsigned long long work = current;
        if (work >= tiles) return;

        const int64_t row = static_cast<int64_t>(work) / tiles_per_row;
        const int64_t tile = static_cast<int64_t>(work) % tiles_per_row;
        const int64_t start = tile * TILE;
        const int count = static_cast<int>(dim - start < TILE ? dim - start : TILE);
        const float* in = x + row * dim + start;
        float* out = output + row * dim + start;
        const bool vectors =
            count == TILE && ((reinterpret_cast<uintptr_t>(in) | reinterpret_cast<uintptr_t>(out)) & 15) == 0;

        float v[ITEMS];
        if (vectors) {
#pragma unroll
            for (int j = 0; j < ITEMS; j += 4) {
                const float4 part = load_streaming(in + t * ITEMS + j);
                v[j] = part.x, v[j + 1] = part.y, v[j + 2] = part.z, v[j + 3] = part.w;
            }
        } else {
#pragma unroll
            for (int j = 0; j < ITEMS; ++j) {
                const int i = j * THREADS + t;
                staged[i + i / ITEMS] = i < count ? in[i] : 0.0f;
            }
            __syncthreads();
#pragma unroll
            for (int j = 0; j < ITEMS; ++j) v[j] = staged[t * (ITEMS + 1) + j];
        }

        // Within the thread, across the warp, across warps. Nothing is ever subtracted again, so that an infinity
        // reaches what comes after it and nothing else.
#pragma unroll
        for (int j = 1; j < ITEMS; ++j) v[j] += v[j - 1];
        float inclusive = v[ITEMS - 1];
#pragma unroll
        for (int offset = 1; offset < 32; offset *= 2) {
            const float other = __shfl_up_sync(FULL, inclusive, offset);
            if (lane >= offset) inclusive += other;
        }
        float before = __shfl_up_sync(FULL, inclusive, 1);
        if (lane == 0) before = 0.0f;
        if (lane == 31) warp_totals[warp] = inclusive;
        __syncthreads();

        float warps_before = 0.0f, total = 0.0f;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) {
            if (w == warp) warps_before = total;
            total += warp_totals[w];
        }
        before += warps_before;

        if (warp == 0) {
            State* row_states = states + row * tiles_per_row;
            float prefix = 0.0f;
            if (tile > 0) {
                if (lane == 0 && tile + 1 < tiles_per_row) publish(row_states + tile, AGGREGATE, total);
                prefix = look_back(row_states, tile, lane);
            }
            if (lane == 0) {
                if (tile + 1 < tiles_per_row) publish(row_states + tile, PREFIX, prefix + total);
                tile_prefix = prefix;
            }
        }
        __syncthreads();

        before += tile_prefix;
#pragma unroll
        for (int j = 0; j < ITEMS; ++j) v[j] += before;
        if (vectors) {
#pragma unroll
            for (int j = 0; j < ITEMS; j += 4) {
                __stcs(reinterpret_cast<float4*>(out + t * ITEMS + j), make_float4(v[j], v[j + 1], v[j + 2], v[j + 3]));
            }
        } else {
#pragma unroll
            for (int j = 0; j < ITEMS; ++j) staged[t * (ITEMS + 1) + j] = v[j];
            __syncthreads();
#pragma unroll
            for (int j = 0; j < ITEMS; ++j) {
                const int i = j * THREADS + t;
                if (i < count) out[i] = staged[i + i / ITEMS];
            }
        }
        __syncthreads();  // shared memory and `current` are free for the next tile
    }
}

int resident_blocks() {
    static const int blocks = [] {
        int device = 0, sms = 0, per_sm = 0;
        check(cudaGetDevice(&device));
        check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
        check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, cumsum_kernel, THREADS, 0));
        return std::max(1, sms * per_sm);
    }();
    return blocks;
}

}  // namespace

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    if (batch_size <= 0 || dim <= 0) return;
    const cudaStream_t stream = 0;
    const int64_t tiles_per_row = (dim + TILE - 1) / TILE;
    const int64_t tiles = batch_size * tiles_per_row;

    // Slot 0 is the ticket. Everything starts at zero in every call.
    const size_t bytes = (tiles + 1) * sizeof(State);
    const Scratch scratch(bytes, stream);
    State* words = scratch.as<State>();
    check(cudaMemsetAsync(words, 0, bytes, stream));
    const unsigned blocks = static_cast<unsigned>(std::min<int64_t>(tiles, resident_blocks()));
    cumsum_kernel<<<blocks, THREADS, 0, stream>>>(static_cast<float*>(output), static_cast<const float*>(x), dim,
                                                  tiles_per_row, tiles, words, words + 1);
    check(cudaGetLastError());
}
