#define SIZE 32

__constant__ int factor;
__device__ int table[2] = {10, 20};
static __global__ void kernel(int* x) { x[threadIdx.x] = factor * static_cast<int>(threadIdx.x) + table[threadIdx.x % 2]; }

int other_file() {
    const int five = 5;
    int *memory, got[SIZE];
    cudaMalloc(&memory, sizeof got);
    cudaMemcpyToSymbol(factor, &five, sizeof five);
    kernel<<<1, SIZE>>>(memory);
    cudaMemcpy(got, memory, sizeof got, cudaMemcpyDeviceToHost);
    return got[31];
}
