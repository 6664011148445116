// problem: level1/23
// does: one pass for maximum and sum, merged by warp shuffles; one pass to write
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

struct State {
    float top, sum;
};

__device__ __forceinline__ State merge(State a, State b) {
    const float top = fmaxf(a.top, b.top);
    if (top == -INFINITY) return {top, 0.0f};
    return {top, a.sum * __expf(a.top - top) + b.sum * __expf(b.top - top)};
}

__global__ void __launch_bounds__(512) softmax(scalar_t* __restrict__ y, const scalar_t* __restrict__ x, int64_t n) {
    __shared__ State partial[16];
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    State mine{-INFINITY, 0.0f};
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) mine = merge(mine, {to_float(x[i]), 1.0f});
    for (int o = 16; o > 0; o >>= 1) {
        mine = merge(mine, {__shfl_xor_sync(~0u, mine.top, o), __shfl_xor_sync(~0u, mine.sum, o)});
    }
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = mine;
    __syncthreads();
    State all = partial[0];
    for (int w = 1; w < 16; ++w) all = merge(all, partial[w]);
    const float scale = 1.0f / all.sum;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) y[i] = from_float(__expf(to_float(x[i]) - all.top) * scale);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    softmax<<<unsigned(batch_size), 512>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim);
}
