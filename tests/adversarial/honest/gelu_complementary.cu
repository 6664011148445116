// problem: level1/26
// does: by the complementary error function, which keeps its digits where values are very negative
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

__global__ void gelu(scalar_t* y, const scalar_t* x, int64_t n) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float v = to_float(x[i]);
    y[i] = from_float(0.5f * v * erfcf(-v * 0.7071067811865476f));
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const int64_t n = batch_size * dim;
    gelu<<<unsigned((n + 255) / 256), 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), n);
}
