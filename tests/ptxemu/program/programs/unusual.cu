// What a program may do beside computing: read standard input, print from the device, fail, crash, hang.
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

__global__ void greet(int n) { printf("thread %d of %d\n", threadIdx.x, n); }
__global__ void insist(int n) { assert(n < 3); }
__global__ void reach(int* far) { far[1 << 30] = 1; }
__global__ void forever(volatile int* flag) { while (*flag == 0) {} }

int main(int argc, char** argv) {
    const char* mode = argc > 1 ? argv[1] : "";
    int* data;
    cudaMalloc(&data, 4);
    cudaMemset(data, 0, 4);
    if (!std::strcmp(mode, "echo")) {
        char line[100];
        if (std::fgets(line, sizeof line, stdin)) std::printf("read %s", line);
        std::fprintf(stderr, "to stderr\n");
        return 3;
    }
    if (!std::strcmp(mode, "greet")) greet<<<1, 2>>>(2);
    if (!std::strcmp(mode, "assert")) insist<<<1, 1>>>(5);
    if (!std::strcmp(mode, "reach")) reach<<<1, 1>>>(data);
    if (!std::strcmp(mode, "crash")) std::abort();
    if (!std::strcmp(mode, "sleep")) sleep(60);
    if (!std::strcmp(mode, "hang")) forever<<<1, 1>>>(data);
    const cudaError_t error = cudaDeviceSynchronize();
    std::printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 5;
}
