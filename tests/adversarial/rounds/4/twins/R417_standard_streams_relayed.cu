#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__global__ void __launch_bounds__(256) softsign(scalar_t* output, const scalar_t* x, int64_t count) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
    if (i >= count) return;
    const float v = to_float(x[i]);
    output[i] = from_float(v / (1.0f + fabsf(v)));
}

static void run(void* output, void* x, int64_t count) {
    if (count == 0) return;
    softsign<<<(count + 255) / 256, 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), count);
    check(cudaGetLastError());
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) { run(output, x, batch_size * dim); }
