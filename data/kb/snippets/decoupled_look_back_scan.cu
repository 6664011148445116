// Inclusive sum in one pass: each tile publishes its sum, then its inclusive prefix; later tiles look back for them.
#include "check.cuh"

#include <cuda/atomic>

constexpr int THREADS = 128, EACH = 8, TILE = THREADS * EACH;
enum : unsigned { NOTHING = 0, SUM = 1, PREFIX = 2 };

// Flag and value in one 64-bit word, so that they are seen together.
__device__ void publish(unsigned long long *word, unsigned flag, float value) {
    cuda::atomic_ref<unsigned long long, cuda::thread_scope_device>(*word).store(
        (static_cast<unsigned long long>(flag) << 32) | __float_as_uint(value), cuda::memory_order_release);
}

__global__ void scan(float *out, const float *in, int count, unsigned long long *tiles, unsigned *ticket) {
    __shared__ int tile;
    __shared__ float warp_sums[THREADS / 32], before;
    if (threadIdx.x == 0) tile = atomicAdd(ticket, 1);  // in order of arrival: whoever is looked for has begun
    __syncthreads();
    int first = tile * TILE + threadIdx.x * EACH, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float kept[EACH], sum = 0.0f;
    for (int i = 0; i < EACH; ++i) kept[i] = sum += first + i < count ? in[first + i] : 0.0f;
    float inclusive = sum;
    for (int step = 1; step < 32; step *= 2) {
        float left = __shfl_up_sync(~0u, inclusive, step);
        if (lane >= step) inclusive += left;
    }
    if (lane == 31) warp_sums[warp] = inclusive;
    __syncthreads();
    float offset = inclusive - sum, total = 0.0f;
    for (int w = 0; w < THREADS / 32; ++w) {
        if (w == warp) offset += total;
        total += warp_sums[w];
    }
    if (threadIdx.x == 0) {
        float prefix = 0.0f;
        if (tile > 0) publish(tiles + tile, SUM, total);
        for (int at = tile - 1; at >= 0;) {
            unsigned long long word =
                cuda::atomic_ref<unsigned long long, cuda::thread_scope_device>(tiles[at]).load(cuda::memory_order_acquire);
            unsigned flag = word >> 32;
            if (flag == NOTHING) continue;
            prefix += __uint_as_float(static_cast<unsigned>(word));
            if (flag == PREFIX) break;
            --at;
        }
        publish(tiles + tile, PREFIX, prefix + total);
        before = prefix;
    }
    __syncthreads();
    for (int i = 0; i < EACH; ++i)
        if (first + i < count) out[first + i] = before + offset + kept[i];
}

int main() {
    const int count = 7 * TILE + 13, tiles = (count + TILE - 1) / TILE;
    std::vector<float> x = values(count, 3), expected(count);
    double sum = 0;
    for (int i = 0; i < count; ++i) expected[i] = sum += x[i];
    float *in = on_device(x), *out = on_device(std::vector<float>(count, NAN));
    auto *words = on_device(std::vector<unsigned long long>(tiles, 0));
    unsigned *ticket = on_device(std::vector<unsigned>(1, 0));
    scan<<<tiles, THREADS>>>(out, in, count, words, ticket);
    return compare(on_host(out, count), expected, 1e-4f);
}
