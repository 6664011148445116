// problem: level1/47
// does: sums four slices of the reduced dimension side by side, and adds their results in a second launch
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

constexpr int THREADS = 64, SLICES = 4;

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__global__ void sum_slices(float* sums, const scalar_t* x, int64_t dim1, int64_t dim2) {
    const int64_t col = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (col >= dim2) return;
    const scalar_t* column = x + blockIdx.y * dim1 * dim2 + col;
    const int64_t end = dim1 * (blockIdx.z + 1) / SLICES;
    float sum = 0.0f;
    for (int64_t i = dim1 * blockIdx.z / SLICES; i < end; ++i) sum += to_float(column[i * dim2]);
    sums[(int64_t(blockIdx.z) * gridDim.y + blockIdx.y) * dim2 + col] = sum;
}

__global__ void add_slices(scalar_t* output, const float* sums, int64_t count) {
    const int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= count) return;
    float sum = 0.0f;
    for (int slice = 0; slice < SLICES; ++slice) sum += sums[slice * count + i];
    output[i] = from_float(sum);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim1, int64_t dim2) {
    const int64_t count = batch_size * dim2;
    float* sums;
    check(cudaMallocAsync(&sums, SLICES * count * sizeof(float), nullptr));
    sum_slices<<<dim3(unsigned((dim2 + THREADS - 1) / THREADS), unsigned(batch_size), SLICES), THREADS>>>(
        sums, static_cast<const scalar_t*>(x), dim1, dim2);
    add_slices<<<unsigned((count + THREADS - 1) / THREADS), THREADS>>>(static_cast<scalar_t*>(output), sums, count);
    check(cudaFreeAsync(sums, nullptr));
    check(cudaGetLastError());
}
