// problem: level1/12
// precision: fp16
// kind: honest
// expects: copies the diagonal into __constant__ memory (device to device, 64 KB at a time, in stream order) in every call, then scales rows with it
#include <kernelblaster/scalar.cuh>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

constexpr int64_t PART = 65536 / sizeof(scalar_t);
__constant__ unsigned char diagonal[65536];
__global__ void scale_kernel(scalar_t* __restrict__ out, const scalar_t* __restrict__ b, int64_t m) {
    const float d = to_float(reinterpret_cast<const scalar_t*>(diagonal)[blockIdx.y]);
    const int64_t row = int64_t(blockIdx.y) * m;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < m; i += int64_t(gridDim.x) * blockDim.x)
        out[row + i] = from_float(d * to_float(b[row + i]));
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n, int64_t m) {
    auto* out = static_cast<scalar_t*>(output);
    auto* a = static_cast<const scalar_t*>(A);
    auto* b = static_cast<const scalar_t*>(B);
    for (int64_t first = 0; first < n; first += PART) {
        const int64_t rows = n - first < PART ? n - first : PART;
        check(cudaMemcpyToSymbolAsync(diagonal, a + first, rows * sizeof(scalar_t), 0, cudaMemcpyDeviceToDevice, nullptr));
        scale_kernel<<<dim3((m + 1023) / 1024, rows), 256>>>(out + first * m, b + first * m, m);
    }
    check(cudaGetLastError());
}
