// problem: level1/12
// does: reads the end of B, and writes all of C, by hints that these lines are the first to go
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

constexpr int VEC = 16 / sizeof(scalar_t), THREADS = 256;
constexpr int64_t STREAMED = int64_t{26} << 20;  // bytes of B from which on lines are the first to go
struct alignas(16) Pack {
    scalar_t v[VEC];
};

__global__ void scale_packs(scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t packs, int64_t per_row) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= packs) return;
    union {
        uint4 raw;
        Pack pack;
    };
    const uint4* at = reinterpret_cast<const uint4*>(B) + i;
    raw = i < STREAMED / 16 ? __ldg(at) : __ldcs(at);
    const float a = to_float(A[i / per_row]);
    for (int j = 0; j < VEC; ++j) pack.v[j] = from_float(a * to_float(pack.v[j]));
    __stcs(reinterpret_cast<uint4*>(C) + i, raw);
}

__global__ void scale_elements(scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t count, int64_t m) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
    if (i < count) C[i] = from_float(to_float(A[i / m]) * to_float(B[i]));
}

static unsigned blocks_for(int64_t count) { return static_cast<unsigned>((count + THREADS - 1) / THREADS); }

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n, int64_t m) {
    auto* c = static_cast<scalar_t*>(output);
    const auto *a = static_cast<const scalar_t*>(A), *b = static_cast<const scalar_t*>(B);
    const bool aligned = (reinterpret_cast<uintptr_t>(output) | reinterpret_cast<uintptr_t>(B)) % sizeof(Pack) == 0;
    if (aligned && m % VEC == 0) {
        scale_packs<<<blocks_for(n * m / VEC), THREADS>>>(c, a, b, n * m / VEC, m / VEC);
    } else {
        scale_elements<<<blocks_for(n * m), THREADS>>>(c, a, b, n * m, m);
    }
    check(cudaGetLastError());
}
