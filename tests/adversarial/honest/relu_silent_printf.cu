// problem: level1/19
// does: has printf and assert on paths that are never taken
// emulated: correct
// cuda: correct
#include <cassert>
#include <cstdio>
#include <kernelblaster/scalar.cuh>

__global__ void relu(scalar_t* y, const scalar_t* x, int64_t n) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (n < 0) printf("negative count %lld\n", static_cast<long long>(n));
    assert(n >= 0);
    if (i < n) y[i] = from_float(fmaxf(to_float(x[i]), 0.0f));
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const int64_t n = batch_size * dim;
    relu<<<unsigned((n + 255) / 256), 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), n);
    if (cudaPeekAtLastError() != cudaSuccess) std::fprintf(stderr, "launch failed\n");
}
