// Sum over the middle dimension: one output per thread; grid y counts the batch.
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__global__ void sum_kernel(scalar_t* output, const scalar_t* x, int64_t dim1, int64_t dim2) {
    const int64_t col = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (col >= dim2) return;
    const scalar_t* column = x + blockIdx.y * dim1 * dim2 + col;
    float sum = 0.0f;
    for (int64_t i = 0; i < dim1; ++i) sum += to_float(column[i * dim2]);
    output[blockIdx.y * dim2 + col] = from_float(sum);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim1, int64_t dim2) {
    const int threads = 256;
    const dim3 blocks((dim2 + threads - 1) / threads, batch_size);
    sum_kernel<<<blocks, threads>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim1, dim2);
    check(cudaGetLastError());
}
