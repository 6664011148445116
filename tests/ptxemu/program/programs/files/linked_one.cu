#include "linked.hpp"

__device__ int visits = 5;

static __device__ float own(float x) { return x + 1; }
static __global__ void kernel(float* x) {
    if (threadIdx.x == 0) printf("one %s\n", "first");
    const Square square(3.0f);
    const Shape& shape = square;
    const float area = x[threadIdx.x] > 1e9f ? 0.0f : shape.area();
    x[threadIdx.x] = combined(own(x[threadIdx.x]), 3) + steps[threadIdx.x % 2](2.0f) + area;
    atomicAdd(&visits, 1);
}

// Calls itself and the other file's function in turns.
__device__ float combined(float x, int depth) { return depth == 0 ? x : weighted(combined(halved(x), depth - 1), depth); }

int main() {
    float *memory, got[kThreads];
    int count = 0;
    for (int i = 0; i < kThreads; ++i) got[i] = static_cast<float>(i);
    if (cudaMalloc(&memory, sizeof got)) return 2;
    const float given[4] = {1, 2, 3, 4};
    cudaMemcpyToSymbol(weights, given, sizeof given);
    cudaMemcpy(memory, got, sizeof got, cudaMemcpyHostToDevice);
    shared_count = 1;
    kernel<<<1, kThreads>>>(memory);
    scaled<<<1, kThreads, sizeof got>>>(memory, 2.0f);
    if (!second_file(memory)) return 3;
    cudaMemcpy(got, memory, sizeof got, cudaMemcpyDeviceToHost);
    cudaMemcpyFromSymbol(&count, visits, sizeof count);
    // Of thread 63: 64 / 8 = 8, weighted by 2, 3 and 4, and what its step adds; then turned round twice.
    const float last = ((8.0f + 2) + 3) + 4 + 2.0f * 3 + 9.0f;
    return got[63] == last * 2 * 3 && count == 5 + kThreads && shared_count == 2 ? 0 : 1;
}
