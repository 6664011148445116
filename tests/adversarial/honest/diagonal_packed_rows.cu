// problem: level1/12
// does: scales sixteen bytes a thread, or single elements where rows are no multiple of that
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
struct alignas(16) Pack {
    scalar_t v[VEC];
};

__global__ void scale_packs(scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t packs, int64_t per_row) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= packs) return;
    Pack p = reinterpret_cast<const Pack*>(B)[i];
    const float a = to_float(A[i / per_row]);
    for (int j = 0; j < VEC; ++j) p.v[j] = from_float(a * to_float(p.v[j]));
    reinterpret_cast<Pack*>(C)[i] = p;
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
