// Launches whose counts the emulator's model is set beside: `small_launches.py` runs it under Nsight Compute.
//
//   small_launches carveout      blocks of many sizes, registers and amounts of shared memory: how much of an SM's memory
//                                the driver makes shared memory
//   small_launches traffic       kernels that touch little: what is read that no thread asked for
//   small_launches atomics       additions of 16-bit floats that meet: how often they are tried again
//
// Before each launch a line with its name goes to standard output, in the order of the launches.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

void check(cudaError_t error, const char* what) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    std::exit(1);
}

// `kLive` values are alive at once, so that each thread needs at least so many registers.
template <int kLive>
__global__ void with_registers(float* out, int rounds) {
    extern __shared__ float scratch[];
    float value[kLive];
#pragma unroll
    for (int k = 0; k < kLive; ++k) value[k] = out[k];
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int k = 0; k < kLive; ++k) value[k] = fmaf(value[k], value[(k + 1) % kLive], 0.5f);
    }
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < kLive; ++k) sum += value[k];
    if (sum == 0.12345f) scratch[threadIdx.x] = sum;
    if (sum == 0.54321f) out[0] = scratch[threadIdx.x ^ 1];
}

template <int kLive>
void carveouts(float* memory) {
    const int threads[] = {32, 64, 96, 128, 192, 256, 384, 512, 768, 1024};
    const int bytes[] = {0, 128, 512, 1024, 1152, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152, 65536, 98304};
    check(cudaFuncSetAttribute(with_registers<kLive>, cudaFuncAttributeMaxDynamicSharedMemorySize, 98304), "shared memory");
    for (const int block : threads)
        for (const int shared : bytes) {
            std::printf("live %d threads %d shared %d\n", kLive, block, shared);
            with_registers<kLive><<<264, block, shared>>>(memory, 1);
            const cudaError_t error = cudaGetLastError();
            // Too many registers for so many threads: there is no launch, and no name of one.
            if (error != cudaSuccess) std::printf("refused\n");
        }
}

void carveout() {
    float* memory = nullptr;
    check(cudaMalloc(&memory, 1 << 20), "memory");
    check(cudaMemset(memory, 0, 1 << 20), "memory");
    check(cudaProfilerStart(), "profiler");
    carveouts<4>(memory);
    carveouts<32>(memory);
    carveouts<80>(memory);
    check(cudaDeviceSynchronize(), "running");
    check(cudaProfilerStop(), "profiler");
}

__global__ void nothing() {}

__global__ void copy(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

__global__ void read_only(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] == 0.12345f) y[i] = 1.0f;
}

__global__ void write_only(float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 1.0f;
}

// Every block reads the same values.
__global__ void read_together(const float* x, float* y, int n) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
    if (sum == 0.12345f) y[threadIdx.x] = sum;
}

__global__ void tile_product(const float* a, const float* b, float* c, int n) {
    __shared__ float left[16][16], right[16][16];
    const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < n; k += 16) {
        left[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
        __syncthreads();
        for (int j = 0; j < 16; ++j) sum += left[threadIdx.y][j] * right[j][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

void traffic() {
    constexpr int kMost = 1 << 22;
    float *x = nullptr, *y = nullptr, *z = nullptr;
    check(cudaMalloc(&x, kMost * sizeof(float)), "memory");
    check(cudaMalloc(&y, kMost * sizeof(float)), "memory");
    check(cudaMalloc(&z, kMost * sizeof(float)), "memory");
    check(cudaMemset(x, 0, kMost * sizeof(float)), "memory");
    check(cudaMemset(y, 0, kMost * sizeof(float)), "memory");
    check(cudaProfilerStart(), "profiler");
    for (const int blocks : {1, 132, 1056}) {
        std::printf("nothing %d\n", blocks);
        nothing<<<blocks, 256>>>();
    }
    for (const int n : {256, 2048, 16384, 65536, 262144, 1 << 20, 1 << 22}) {
        const int blocks = (n + 255) / 256;
        std::printf("copy %d\n", n);
        copy<<<blocks, 256>>>(x, y, n);
        std::printf("read_only %d\n", n);
        read_only<<<blocks, 256>>>(x, y, n);
        std::printf("write_only %d\n", n);
        write_only<<<blocks, 256>>>(y, n);
    }
    for (const int n : {256, 4096, 65536})
        for (const int blocks : {1, 16, 132, 528}) {
            std::printf("read_together %d %d\n", n, blocks);
            read_together<<<blocks, 256>>>(x, y, n);
        }
    for (const int n : {64, 128, 256, 512}) {
        std::printf("tile_product %d\n", n);
        tile_product<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(x, y, z, n);
    }
    check(cudaDeviceSynchronize(), "running");
    check(cudaProfilerStop(), "profiler");
}

// Places come from memory, so that the compiler does not know which of them are equal.
template <class T>
__global__ void add_at(const int* places, T* sums, T one, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(sums + places[i], one);
}

template <class T>
void additions(const char* type, T one, int* places, void* sums) {
    const int shapes[][2] = {{1, 32}, {1, 256}, {8, 256}, {132, 32}, {132, 256}, {391, 256}};
    for (const auto& shape : shapes)
        for (const int words : {1, 2, 32, 512, 1 << 20}) {
            const int n = shape[0] * shape[1];
            std::vector<int> host(n);
            for (int i = 0; i < n; ++i) host[i] = static_cast<int>((i * 2654435761u >> 7) % static_cast<unsigned>(words));
            check(cudaMemcpy(places, host.data(), n * sizeof(int), cudaMemcpyHostToDevice), "places");
            check(cudaMemset(sums, 0, 4 << 20), "sums");
            check(cudaProfilerStart(), "profiler");
            std::printf("add %s blocks %d threads %d words %d\n", type, shape[0], shape[1], words);
            add_at<<<shape[0], shape[1]>>>(places, static_cast<T*>(sums), one, n);
            check(cudaDeviceSynchronize(), "running");
            check(cudaProfilerStop(), "profiler");
        }
}

void atomics() {
    int* places = nullptr;
    void* sums = nullptr;
    check(cudaMalloc(&places, 4 << 20), "memory");
    check(cudaMalloc(&sums, 4 << 20), "memory");
    additions("half", __float2half(1.0f), places, sums);
    additions("bf16", __float2bfloat16(1.0f), places, sums);
    additions("half2", __float2half2_rn(1.0f), places, sums);
}

}  // namespace

int main(int argc, char** argv) {
    const char* part = argc > 1 ? argv[1] : "";
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    if (std::strcmp(part, "carveout") == 0) carveout();
    else if (std::strcmp(part, "traffic") == 0) traffic();
    else if (std::strcmp(part, "atomics") == 0) atomics();
    else return std::fprintf(stderr, "usage: %s carveout | traffic | atomics\n", argv[0]), 2;
    return 0;
}
