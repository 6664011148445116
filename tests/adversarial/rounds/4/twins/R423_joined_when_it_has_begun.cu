#include <kernelblaster/scalar.cuh>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ float of_block(float v, bool greatest) {
    __shared__ float held[256];
    held[threadIdx.x] = v;
    __syncthreads();
    for (int o = 128; o > 0; o /= 2) {
        if (threadIdx.x < o) {
            const float other = held[threadIdx.x + o];
            held[threadIdx.x] = greatest ? fmaxf(held[threadIdx.x], other) : held[threadIdx.x] + other;
        }
        __syncthreads();
    }
    const float all = held[0];
    __syncthreads();
    return all;
}

__global__ void softmax_kernel(scalar_t* output, const scalar_t* x, int64_t dim) {
    const scalar_t* row = x + blockIdx.x * dim;
    scalar_t* out = output + blockIdx.x * dim;
    float m = -INFINITY, s = 0.0f;
    for (int64_t i = threadIdx.x; i < dim; i += 256) m = fmaxf(m, to_float(row[i]));
    m = of_block(m, true);
    for (int64_t i = threadIdx.x; i < dim; i += 256) s += expf(to_float(row[i]) - m);
    s = of_block(s, false);
    const float scale = 1.0f / s;
    for (int64_t i = threadIdx.x; i < dim; i += 256) out[i] = from_float(expf(to_float(row[i]) - m) * scale);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    softmax_kernel<<<static_cast<unsigned>(batch_size), 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim);
    check(cudaGetLastError());
}
