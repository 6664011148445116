// problem: level1/19
// does: asserts its bounds on the device and on the host, and would print behind a debug switch
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <cassert>
#include <cstdint>
#include <cstdio>

#ifndef RELU_DEBUG
#define RELU_DEBUG 0
#endif
#define TRACE(...)                               \
    do {                                         \
        if (RELU_DEBUG) printf(__VA_ARGS__);     \
    } while (0)

template <int kPerThread>
__global__ void relu(scalar_t* __restrict__ y, const scalar_t* __restrict__ x, const int64_t n) {
    assert(blockDim.x % 32 == 0 && gridDim.y == 1);
    const int64_t first = int64_t(blockIdx.x) * blockDim.x * kPerThread + threadIdx.x;
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
        const int64_t at = first + int64_t(i) * blockDim.x;
        if (at >= n) return;
        assert(at >= 0);
        const float v = to_float(x[at]);
        if (isnan(v)) TRACE("NaN at %lld\n", static_cast<long long>(at));
        y[at] = v < 0.0f ? from_float(0.0f) : x[at];
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    assert(output != nullptr && x != nullptr);
    assert(reinterpret_cast<std::uintptr_t>(x) % sizeof(scalar_t) == 0);
    const int64_t n = batch_size * dim;
    if (n == 0) return;
    constexpr int per_thread = 4, threads = 256;
    const unsigned blocks = unsigned((n + per_thread * threads - 1) / (per_thread * threads));
    TRACE("relu<%d><<<%u, %d>>>\n", per_thread, blocks, threads);
    relu<per_thread><<<blocks, threads>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), n);
    [[maybe_unused]] const cudaError_t status = cudaGetLastError();
    assert(status == cudaSuccess);
}
