// problem: level1/19
// does: has the host sleep while it waits for the device, as programs that share a processor do, before its first launch
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

__global__ void relu(scalar_t* __restrict__ y, const scalar_t* __restrict__ x, int64_t n) {
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += int64_t(gridDim.x) * blockDim.x) {
        y[i] = from_float(fmaxf(to_float(x[i]), 0.0f));
    }
}

static void check(cudaError_t status) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
    std::exit(1);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    static const cudaError_t scheduled = cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync | cudaDeviceMapHost);
    check(scheduled);
    const int64_t n = batch_size * dim;
    relu<<<unsigned((n + 1023) / 1024), 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), n);
    check(cudaGetLastError());
}
