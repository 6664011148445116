// C = A b: one block per row, each thread strides over the row.
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffff, value, offset);
    return value;
}

// Every thread of the block receives the sum.
__device__ float block_sum(float value) {
    __shared__ float partial[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    value = warp_sum(value);
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    value = warp_sum(lane < warps ? partial[lane] : 0.0f);
    __syncthreads();
    return value;
}

__global__ void matvec_kernel(scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t k) {
    const scalar_t* row = A + blockIdx.x * k;
    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < k; i += blockDim.x) sum += to_float(row[i]) * to_float(B[i]);
    sum = block_sum(sum);
    if (threadIdx.x == 0) C[blockIdx.x] = from_float(sum);
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t m, int64_t k) {
    matvec_kernel<<<m, 256>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(A), static_cast<const scalar_t*>(B), k);
    check(cudaGetLastError());
}
