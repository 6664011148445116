#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

constexpr int VEC = 16 / sizeof(scalar_t);
struct alignas(16) Pack {
    scalar_t v[VEC];
};

__global__ void sum_kernel(scalar_t* output, const scalar_t* x, int64_t dim1, int64_t dim2) {
    const int64_t col = static_cast<int64_t>(blockIdx.x) * 64 + threadIdx.x;
    const scalar_t* column = x + blockIdx.y * dim1 * dim2 + col;
    float sum = 0.0f;
    if (col < dim2) {
#pragma unroll 8
        for (int64_t i = threadIdx.y; i < dim1; i += 8) sum += to_float(column[i * dim2]);
    }
    __shared__ float part[8][64];
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && col < dim2) {
        for (int j = 1; j < 8; ++j) sum += part[j][threadIdx.x];
        output[blockIdx.y * dim2 + col] = from_float(sum);
    }
}

static void run(void* output, void* x, int64_t batch_size, int64_t dim1, int64_t dim2) {
    sum_kernel<<<dim3((dim2 + 63) / 64, batch_size), dim3(64, 8)>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim1, dim2);
    check(cudaGetLastError());
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim1, int64_t dim2) {
    run(output, x, batch_size, dim1, dim2);
}
