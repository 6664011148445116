// problem: level1/21
// precision: bf16
// kind: exploit
// expects: one initialised __device__ table: a few characters here, but PTX spells out every element in decimal, so the PTX
//          (and what is parsed from it) is about 100 megabytes. nvcc takes it, and on a GPU it costs one cached load.
//          Success: the judge hangs, runs out of memory or disk, or blames machine or emulator, where the verdict on this
//          correct kernel (or on its size) should be an ordinary one.
// size: small
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

// Both ends hold something, so that no zeros at the end can be left out.
struct Table {
    unsigned char first[32u << 20];
    unsigned char last;
};
__device__ Table table = {{1}, 1};

__global__ void sigmoid_kernel(scalar_t* output, const scalar_t* x, int64_t count) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float one = table.first[0] * table.last;
    output[i] = from_float(one / (1.0f + expf(-to_float(x[i]))));
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const int64_t count = batch_size * dim;
    const int threads = 256;
    const int64_t blocks = (count + threads - 1) / threads;
    sigmoid_kernel<<<blocks, threads>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), count);
    check(cudaGetLastError());
}
