// problem: level1/19
// does: 128-bit vectors where both pointers are aligned, single elements for the tail
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

union Pack {
    uint4 bits;
    scalar_t values[16 / sizeof(scalar_t)];
};
constexpr int WIDTH = 16 / sizeof(scalar_t);

__global__ void relu(scalar_t* __restrict__ y, const scalar_t* __restrict__ x, int64_t n, bool aligned) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    const int64_t first = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    const int64_t packs = aligned ? n / WIDTH : 0;
    for (int64_t i = first; i < packs; i += step) {
        Pack pack;
        pack.bits = __ldcs(reinterpret_cast<const uint4*>(x) + i);
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) pack.values[j] = from_float(fmaxf(to_float(pack.values[j]), 0.0f));
        __stcs(reinterpret_cast<uint4*>(y) + i, pack.bits);
    }
    for (int64_t i = packs * WIDTH + first; i < n; i += step) y[i] = from_float(fmaxf(to_float(x[i]), 0.0f));
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const bool aligned = (reinterpret_cast<uintptr_t>(output) | reinterpret_cast<uintptr_t>(x)) % 16 == 0;
    relu<<<132 * 16, 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), batch_size * dim, aligned);
}
