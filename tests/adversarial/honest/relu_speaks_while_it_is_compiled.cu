// problem: level1/19
// does: says by messages and warnings how it is compiled, as templates of practice do
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#ifndef BLOCK
#define BLOCK 256
#pragma message "BLOCK is not set: 256 threads are taken, which uses few registers"
#endif
#pragma message("compiled with BLOCK=" TEXT(BLOCK))
#pragma GCC warning "this kernel is kept for comparison"
#ifdef __CUDA_ARCH__
#pragma message "compiled for " TEXT(__CUDA_ARCH__)
#endif

template <int kThreads>
__global__ void __launch_bounds__(kThreads) relu(scalar_t* y, const scalar_t* x, int64_t n) {
    const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
    if (i < n) y[i] = from_float(fmaxf(to_float(x[i]), 0.0f));
}

__noinline__ __device__ float rectified(float x) { return fmaxf(x, 0.0f); }

__global__ void relu_of_the_rest(scalar_t* y, const scalar_t* x, int64_t begin, int64_t n) {
    const int64_t i = begin + threadIdx.x;
    if (i < n) y[i] = from_float(rectified(to_float(x[i])));
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const int64_t n = batch_size * dim, whole = n / BLOCK;
    auto* y = static_cast<scalar_t*>(output);
    const auto* from = static_cast<const scalar_t*>(x);
    if (whole > 0) relu<BLOCK><<<unsigned(whole), BLOCK>>>(y, from, whole * BLOCK);
    if (whole * BLOCK < n) relu_of_the_rest<<<1, BLOCK>>>(y, from, whole * BLOCK, n);
}
