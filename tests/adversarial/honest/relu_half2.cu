// problem: level1/19
// does: half2 arithmetic
// emulated: correct
// cuda: correct
#include <cuda_fp16.h>
#include <kernelblaster/scalar.cuh>

__global__ void relu(__half2* y, const __half2* x, int64_t pairs) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < pairs) y[i] = __hmax2(x[i], __float2half2_rn(0.0f));
}

__global__ void relu_last(__half* y, const __half* x, int64_t n) { y[n - 1] = __hmax(x[n - 1], __float2half(0.0f)); }

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const int64_t n = batch_size * dim, pairs = n / 2;
    relu<<<unsigned((pairs + 255) / 256), 256>>>(static_cast<__half2*>(output), static_cast<const __half2*>(x), pairs);
    if (n % 2) relu_last<<<1, 1>>>(static_cast<__half*>(output), static_cast<const __half*>(x), n);
}
