// problem: data/kernrl/level6/002_Histogram_256
// does: counts two values to a word of 16 bits each, in pieces too short to overflow
// emulated: correct
// cuda: correct
// precision: fp32
#include <kernelblaster/kernels/launch.cuh>

constexpr int64_t PIECE = 65535;

__global__ void histogram(int32_t* output, const uint8_t* data, int64_t count) {
    __shared__ uint32_t counts[128];
    for (int64_t begin = blockIdx.x * PIECE; begin < count; begin += gridDim.x * PIECE) {
        for (int i = threadIdx.x; i < 128; i += blockDim.x) counts[i] = 0;
        __syncthreads();
        const int64_t end = begin + PIECE < count ? begin + PIECE : count;
        for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
            atomicAdd(&counts[data[i] / 2], data[i] % 2 ? 65536u : 1u);
        }
        __syncthreads();
        for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&output[i], int32_t(counts[i / 2] >> 16 * (i % 2) & 65535));
        __syncthreads();
    }
}

void launch_gpu_implementation(void* output, void* data, int64_t count) {
    check(cudaMemsetAsync(output, 0, 256 * sizeof(int32_t)));
    histogram<<<blocks_for(count, PIECE), 512>>>(static_cast<int32_t*>(output), static_cast<const uint8_t*>(data), count);
    check(cudaGetLastError());
}
