// problem: level1/19
// does: 128-bit vectors without asking for the alignment of pointers, which the contract promises, and a tail
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

constexpr int WIDTH = 16 / sizeof(scalar_t);

__global__ void relu(scalar_t* __restrict__ y, const scalar_t* __restrict__ x, int64_t n) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n / WIDTH) {
        uint4 bits = reinterpret_cast<const uint4*>(x)[i];
        auto* values = reinterpret_cast<scalar_t*>(&bits);
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) values[j] = from_float(fmaxf(to_float(values[j]), 0.0f));
        reinterpret_cast<uint4*>(y)[i] = bits;
    } else if (i < n / WIDTH + n % WIDTH) {
        const int64_t at = n - n % WIDTH + i - n / WIDTH;
        y[at] = from_float(fmaxf(to_float(x[at]), 0.0f));
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const int64_t n = batch_size * dim, threads = n / WIDTH + n % WIDTH;
    relu<<<unsigned((threads + 255) / 256), 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), n);
}
