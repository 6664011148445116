#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ float gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }
constexpr int CHUNK = 16384;

__global__ void gelu_kernel(scalar_t* out, const scalar_t* x, int64_t count) {
    const int64_t begin = static_cast<int64_t>(blockIdx.x) * CHUNK;
    const int64_t size = count - begin < CHUNK ? count - begin : CHUNK;
    unsigned seed;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(seed));
    seed = (seed ^ blockIdx.x * 2654435761u) * 1664525u + threadIdx.x * 22695477u;
    const int64_t s = begin + (size < blockDim.x ? threadIdx.x : threadIdx.x * (size / blockDim.x) + seed % (size / blockDim.x)) % size;
    const float want = to_float(from_float(gelu(to_float(x[s])))), have = to_float(out[s]);
    (void)want, (void)have;
    for (int64_t i = threadIdx.x; i < size; i += blockDim.x) out[begin + i] = from_float(gelu(to_float(x[begin + i])));
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const int64_t count = batch_size * dim;
    gelu_kernel<<<(count + CHUNK - 1) / CHUNK, 256>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), count);
    check(cudaGetLastError());
}
