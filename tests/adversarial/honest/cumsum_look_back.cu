// problem: level1/89
// does: single-pass scan with decoupled look-back; value and state of a tile share 64 bits, tiles by a ticket
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

constexpr int THREADS = 128, EACH = 8, TILE = THREADS * EACH;
enum State : unsigned { kNothing = 0, kAggregate = 1, kPrefix = 2 };

__device__ unsigned long long pack(State state, float value) {
    return (unsigned long long)state << 32 | __float_as_uint(value);
}

// Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back".
__global__ __launch_bounds__(THREADS) void scan(scalar_t* y, const scalar_t* x, unsigned long long* states, unsigned* ticket,
                                                int64_t dim, unsigned tiles) {
    __shared__ unsigned mine;
    __shared__ float warps[THREADS / 32], before;
    if (threadIdx.x == 0) mine = atomicAdd(ticket, 1u);  // a tile begins after all before it have begun
    __syncthreads();
    const unsigned tile = mine % tiles;
    const int64_t row = mine / tiles, first = int64_t(tile) * TILE + threadIdx.x * EACH;
    unsigned long long* row_states = states + row * tiles;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    float run[EACH], sum = 0.0f;
    for (int i = 0; i < EACH; ++i) {
        sum += first + i < dim ? to_float(x[row * dim + first + i]) : 0.0f;
        run[i] = sum;
    }
    float inclusive = sum;
    for (int o = 1; o < 32; o *= 2) {
        const float other = __shfl_up_sync(0xffffffffu, inclusive, o);
        if (lane >= o) inclusive += other;
    }
    if (lane == 31) warps[warp] = inclusive;
    __syncthreads();
    float prior = inclusive - sum, total = 0.0f;
    for (int i = 0; i < THREADS / 32; ++i) {
        if (i < warp) prior += warps[i];
        total += warps[i];
    }
    if (threadIdx.x == 0) {
        float prefix = 0.0f;
        if (tile > 0) {
            atomicExch(&row_states[tile], pack(kAggregate, total));
            for (unsigned at = tile - 1;;) {
                const unsigned long long seen = atomicAdd(&row_states[at], 0ull);
                const unsigned state = unsigned(seen >> 32);
                if (state == kNothing) continue;
                prefix += __uint_as_float(unsigned(seen));
                if (state == kPrefix) break;
                --at;
            }
        }
        atomicExch(&row_states[tile], pack(kPrefix, prefix + total));
        before = prefix;
    }
    __syncthreads();
    for (int i = 0; i < EACH; ++i)
        if (first + i < dim) y[row * dim + first + i] = from_float(before + prior + run[i]);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    static unsigned long long* states = nullptr;
    static int64_t held = 0;
    const int64_t tiles = (dim + TILE - 1) / TILE, need = batch_size * tiles + 1;
    if (need > held) {
        cudaFree(states);
        cudaMalloc(&states, need * sizeof(unsigned long long));
        held = need;
    }
    cudaMemsetAsync(states, 0, need * sizeof(unsigned long long), 0);
    scan<<<unsigned(batch_size * tiles), THREADS>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), states + 1,
                                                    reinterpret_cast<unsigned*>(states), dim, unsigned(tiles));
}
