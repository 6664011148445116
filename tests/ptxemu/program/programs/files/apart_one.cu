// Two files whose device code is each its own: they have the same names for different things.
#include <cstdio>
#define SIZE 64

__constant__ int factor;
__device__ int table[2] = {1, 2};
static __global__ void kernel(int* x) { x[threadIdx.x] = factor * static_cast<int>(threadIdx.x) + table[threadIdx.x % 2]; }

int other_file();

int main() {
    const int three = 3;
    int *memory, got[SIZE];
    cudaMalloc(&memory, sizeof got);
    cudaMemcpyToSymbol(factor, &three, sizeof three);
    kernel<<<1, SIZE>>>(memory);
    cudaMemcpy(got, memory, sizeof got, cudaMemcpyDeviceToHost);
    return got[63] == 3 * 63 + 2 && other_file() == 5 * 31 + 20 ? 0 : 1;
}
