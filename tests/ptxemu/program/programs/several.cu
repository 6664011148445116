// Several bugs in one program: `several CASE` ends with 0 whatever its kernels do.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

// Four accesses that a GPU does not survive, and one more place that is right.
__global__ void four_bugs(int* x, int n) {
    __shared__ int tile[32];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = 1;
    __syncthreads();
    const int beyond = x[i + n];                                // BUG load beyond the end
    x[i + 2 * n] = beyond;                                      // BUG store beyond the end
    tile[threadIdx.x + (n >> 3)] = 2;                           // BUG store beyond shared memory
    atomicAdd(reinterpret_cast<int*>(reinterpret_cast<char*>(x) + 2 * i + 1), 1);  // BUG misaligned atomic
    if (i < n) x[i] = 7 + tile[threadIdx.x];
}

// Only the last lanes of the last block are wrong.
__global__ void some_lanes(const int* x, int* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] + 1;  // BUG beyond the end
}

// What is read beyond the end keeps it going.
__global__ void round_for_ever(const volatile int* x, int n) {
    while (x[n] == 0) {  // BUG a loop that a zero keeps alive
    }
}

__global__ void fill(int* x, int n) {
    if (threadIdx.x < n) x[threadIdx.x] = 1;
}

static int bugs() {
    constexpr int kCount = 256;
    int* x;
    cudaMalloc(&x, kCount * sizeof(int));
    cudaMemset(x, 0, kCount * sizeof(int));
    four_bugs<<<kCount / 32, 32>>>(x, kCount);
    std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    return 0;
}

static int lanes() {
    constexpr int kCount = 100;
    int *x, *y;
    cudaMalloc(&x, kCount * sizeof(int));
    cudaMalloc(&y, 128 * sizeof(int));
    cudaMemset(x, 0, kCount * sizeof(int));
    some_lanes<<<2, 64>>>(x, y, kCount);
    std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    return 0;
}

static int loop() {
    int* x;
    cudaMalloc(&x, sizeof(int));
    cudaMemset(x, 0, sizeof(int));
    round_for_ever<<<1, 32>>>(x, 1);
    std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    return 0;
}

static int* of_a_function(int count) {
    int* x;
    cudaMalloc(&x, count * sizeof(int));  // LEAK twice
    return x;
}

static int leaks() {
    int *freed, *kept, *of_array;
    cudaMalloc(&freed, 4000);
    cudaMallocManaged(&kept, 400);  // LEAK once
    cudaMallocAsync(&of_array, 40, nullptr);
    fill<<<1, 32>>>(freed, 10);
    for (int k = 0; k < 2; ++k) of_a_function(25);
    cudaFree(freed);
    cudaFreeAsync(of_array, nullptr);
    return cudaDeviceSynchronize();
}

int main(int argc, char** argv) {
    const char* name = argc > 1 ? argv[1] : "";
    if (!std::strcmp(name, "bugs")) return bugs();
    if (!std::strcmp(name, "lanes")) return lanes();
    if (!std::strcmp(name, "loop")) return loop();
    if (!std::strcmp(name, "leaks")) return leaks();
    return 3;
}
