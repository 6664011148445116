// problem: level1/23
// does: maxima by __reduce_max_sync over integers in the order of the floats, and atomicMax in shared memory
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

// Integers that compare as the floats do.
__device__ int ordered(float v) {
    const int bits = __float_as_int(v);
    return bits >= 0 ? bits : bits ^ 0x7fffffff;
}
__device__ float unordered(int i) { return __int_as_float(i >= 0 ? i : i ^ 0x7fffffff); }

__global__ void __launch_bounds__(512) softmax(scalar_t* y, const scalar_t* x, int64_t n) {
    __shared__ int top_bits;
    __shared__ float total;
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    if (threadIdx.x == 0) {
        top_bits = ordered(-INFINITY);
        total = 0.0f;
    }
    __syncthreads();
    int mine = ordered(-INFINITY);
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) mine = max(mine, ordered(to_float(x[i])));
    mine = __reduce_max_sync(0xffffffffu, mine);
    if (threadIdx.x % 32 == 0) atomicMax(&top_bits, mine);
    __syncthreads();
    const float top = unordered(top_bits);
    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += expf(to_float(x[i]) - top);
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    if (threadIdx.x % 32 == 0) atomicAdd(&total, sum);
    __syncthreads();
    const float divisor = total;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) y[i] = from_float(expf(to_float(x[i]) - top) / divisor);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    softmax<<<unsigned(batch_size), 512>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim);
}
