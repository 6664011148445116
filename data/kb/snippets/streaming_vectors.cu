// ReLU at the rate of a copy: 16-byte accesses, two in flight per thread, marked as read and written once, L2 prefetched.
#include "check.cuh"

constexpr int THREADS = 256, EACH = 2;

__device__ float4 relu(float4 v) { return {fmaxf(v.x, 0), fmaxf(v.y, 0), fmaxf(v.z, 0), fmaxf(v.w, 0)}; }

__global__ void streamed(float *out, const float *in, size_t count) {
    size_t vectors = count / 4, first = blockIdx.x * size_t(THREADS * EACH) + threadIdx.x;
    auto *from = reinterpret_cast<const float4 *>(in);
    auto *to = reinterpret_cast<float4 *>(out);
    float4 held[EACH];
    for (int i = 0; i < EACH; ++i)
        if (first + i * THREADS < vectors) held[i] = __ldcs(from + first + i * THREADS);
    size_t ahead = first + size_t(gridDim.x) * THREADS * EACH;  // what a block of the next wave would read
    if (threadIdx.x % 8 == 0 && ahead < vectors) asm volatile("prefetch.global.L2 [%0];" ::"l"(from + ahead));
    for (int i = 0; i < EACH; ++i)
        if (first + i * THREADS < vectors) __stcs(to + first + i * THREADS, relu(held[i]));
    if (blockIdx.x == 0 && threadIdx.x < count % 4) {
        size_t tail = vectors * 4 + threadIdx.x;
        out[tail] = fmaxf(in[tail], 0);
    }
}

int main() {
    const size_t count = 4 * 5000 + 3;
    std::vector<float> x = values(count, 6), expected(count);
    for (size_t i = 0; i < count; ++i) expected[i] = std::fmax(x[i], 0.0f);
    float *in = on_device(x), *out = on_device(std::vector<float>(count, NAN));
    streamed<<<(count / 4 + THREADS * EACH - 1) / (THREADS * EACH), THREADS>>>(out, in, count);
    return compare(on_host(out, count), expected, 0.0f);
}
