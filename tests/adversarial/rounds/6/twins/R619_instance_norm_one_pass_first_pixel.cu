#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

constexpr int THREADS = 256;
constexpr int HELD = 8;  // elements that a thread keeps in registers

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

// Every thread receives the sum over the block.
__device__ __forceinline__ float block_sum(float value, float* partial) {
    #pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffff, value, offset);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    value = partial[0];
    #pragma unroll
    for (int i = 1; i < THREADS / 32; ++i) value += partial[i];
    return value;
}

__global__ void __launch_bounds__(THREADS) instance_norm_kernel(
    scalar_t* output, const scalar_t* x, int64_t points, float eps) {
    __shared__ float partial[2][THREADS / 32];
    const scalar_t* plane = x + blockIdx.x * points;
    scalar_t* out = output + blockIdx.x * points;

    float held[HELD], sum = 0.0f, squares = 0.0f;
    #pragma unroll
    for (int j = 0; j < HELD; ++j) {
        const int i = threadIdx.x + j * THREADS;
        held[j] = i < points ? to_float(plane[i]) : 0.0f;
    }
    #pragma unroll
    for (int j = 0; j < HELD; ++j) sum += held[j];
    #pragma unroll 4
    for (int64_t i = threadIdx.x + HELD * THREADS; i < points; i += THREADS) sum += to_float(plane[i]);
    const float mean = block_sum(sum, partial[0]) / points;

    #pragma unroll
    for (int j = 0; j < HELD; ++j) {
        const float centred = static_cast<int>(threadIdx.x) + j * THREADS < points ? held[j] - mean : 0.0f;
        squares += centred * centred;
    }
    #pragma unroll 4
    for (int64_t i = threadIdx.x + HELD * THREADS; i < points; i += THREADS) {
        const float centred = to_float(plane[i]) - mean;
        squares += centred * centred;
    }
    const float variance = block_sum(squares, partial[1]) / points;

    const float scale = rsqrtf(variance + eps);
    #pragma unroll
    for (int j = 0; j < HELD; ++j) {
        const int i = threadIdx.x + j * THREADS;
        if (i < points) out[i] = from_float((held[j] - mean) * scale);
    }
    #pragma unroll 4
    for (int64_t i = threadIdx.x + HELD * THREADS; i < points; i += THREADS) {
        out[i] = from_float((to_float(plane[i]) - mean) * scale);
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t features, int64_t dim1,
                               int64_t dim2, float eps) {
    instance_norm_kernel<<<static_cast<unsigned>(batch_size * features), THREADS>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim1 * dim2, eps);
    check(cudaGetLastError());
}
