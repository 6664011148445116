// Histogram of bytes: each block counts in shared memory and adds its counts to the output.
#include <kernelblaster/kernels/launch.cuh>

__global__ void histogram_kernel(int32_t* output, const uint8_t* data, int64_t count) {
    __shared__ int32_t counts[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) counts[i] = 0;
    __syncthreads();
    for (int64_t i = first_index(); i < count; i += index_step()) atomicAdd(&counts[data[i]], 1);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&output[i], counts[i]);
}

void launch_gpu_implementation(void* output, void* data, int64_t count) {
    check(cudaMemsetAsync(output, 0, 256 * sizeof(int32_t)));
    const unsigned wanted = blocks_for(count, 64 * THREADS);
    histogram_kernel<<<wanted, THREADS>>>(static_cast<int32_t*>(output), static_cast<const uint8_t*>(data), count);
    check(cudaGetLastError());
}
