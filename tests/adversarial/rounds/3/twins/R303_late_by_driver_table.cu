#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

constexpr int VEC = 16 / sizeof(scalar_t);
struct alignas(16) Pack {
    scalar_t v[VEC];
};

__device__ float f(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }

__global__ void map_kernel(scalar_t* output, const scalar_t* x, int64_t count) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, packs = count / VEC;
    if (i < packs) {
        Pack p = reinterpret_cast<const Pack*>(x)[i];
        for (int j = 0; j < VEC; ++j) p.v[j] = from_float(f(to_float(p.v[j])));
        reinterpret_cast<Pack*>(output)[i] = p;
    }
    if (i < count % VEC) output[packs * VEC + i] = from_float(f(to_float(x[packs * VEC + i])));
}

static void run(cudaStream_t stream, void* output, void* x, int64_t batch_size, int64_t dim) {
    const int64_t count = batch_size * dim;
    map_kernel<<<count / VEC / 256 + 1, 256, 0, stream>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), count);
    check(cudaGetLastError());
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    run(0, output, x, batch_size, dim);
}
