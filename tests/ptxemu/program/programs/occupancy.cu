// What the runtime answers about occupancy: one line per kernel, block size and dynamic shared memory.
#include <cstdio>

template <int N>
__global__ void hungry(float* x, int n) {
    __shared__ float tile[N];
    float kept[N];
    for (int k = 0; k < N; ++k) kept[k] = x[k * n + threadIdx.x];
    tile[threadIdx.x % N] = x[threadIdx.x];
    __syncthreads();
    for (int k = 0; k < n; ++k)
#pragma unroll
        for (int j = 0; j < N; ++j) kept[j] = kept[j] * kept[(j + 1) % N] + tile[(j + k) % N];
    for (int k = 0; k < N; ++k) x[k * n + threadIdx.x] = kept[k];
}

template <class Kernel>
void ask(const char* name, Kernel kernel) {
    cudaFuncAttributes attributes;
    cudaFuncGetAttributes(&attributes, kernel);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10);
    std::printf("kernel %s %d %zu %d\n", name, attributes.numRegs, attributes.sharedSizeBytes, attributes.maxThreadsPerBlock);
    for (int threads = 32; threads <= 1024; threads += 96)
        for (int shared : {0, 1, 5000, 40000, 200 << 10}) {
            int blocks = -1;
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared);
            std::printf("%s %d %d %d\n", name, threads, shared, blocks);
        }
}

int main() {
    ask("hungry<4>", hungry<4>);
    ask("hungry<24>", hungry<24>);
    ask("hungry<96>", hungry<96>);
    float* x;
    cudaMalloc(&x, 1 << 20);
    hungry<96><<<1, 1024>>>(x, 1);
    std::printf("launch %s\n", cudaGetErrorName(cudaGetLastError()));
    hungry<96><<<1, 256>>>(x, 1);
    std::printf("launch %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
