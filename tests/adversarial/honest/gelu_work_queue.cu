// problem: level1/26
// does: persistent blocks take pieces from an atomic queue that the last block resets
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

struct Queue {
    unsigned long long next;
    unsigned finished;
};
__device__ Queue queue;

constexpr int PIECE = 4096;

__global__ void __launch_bounds__(256) gelu(scalar_t* __restrict__ y, const scalar_t* __restrict__ x, unsigned long long n) {
    __shared__ unsigned long long begin;
    for (;;) {
        if (threadIdx.x == 0) begin = atomicAdd(&queue.next, (unsigned long long)PIECE);
        __syncthreads();
        const unsigned long long from = begin;
        __syncthreads();
        if (from >= n) break;
        const unsigned long long to = from + PIECE < n ? from + PIECE : n;
        for (unsigned long long i = from + threadIdx.x; i < to; i += blockDim.x) {
            const float v = to_float(x[i]);
            y[i] = from_float(0.5f * v * (1.0f + erff(0.707106781f * v)));
        }
    }
    if (threadIdx.x == 0) {
        __threadfence();
        if (atomicAdd(&queue.finished, 1u) == gridDim.x - 1) {
            queue.next = 0;
            queue.finished = 0;
        }
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    static int processors = 0;
    if (!processors) cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    gelu<<<unsigned(processors) * 4, 256>>>((scalar_t*)output, (const scalar_t*)x, (unsigned long long)(batch_size * dim));
}
