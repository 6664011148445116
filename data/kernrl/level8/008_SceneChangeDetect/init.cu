// Differences of pairs of frames: one block per pair.
#include <kernelblaster/kernels/launch.cuh>

constexpr int BINS = 16;

__global__ void compare_kernel(unsigned long long* pixel_difference, int32_t* histogram_difference, const uint8_t* first,
                               const uint8_t* second, int64_t pixels) {
    __shared__ int32_t counts[BINS];  // in the first frame less those in the second
    __shared__ unsigned long long apart;
    if (threadIdx.x < BINS) counts[threadIdx.x] = 0;
    if (threadIdx.x == 0) apart = 0;
    __syncthreads();
    unsigned long long own = 0;
    for (int64_t i = blockIdx.x * pixels + threadIdx.x; i < (blockIdx.x + 1) * pixels; i += blockDim.x) {
        own += abs(first[i] - second[i]);
        atomicAdd(&counts[first[i] / (256 / BINS)], 1);
        atomicSub(&counts[second[i] / (256 / BINS)], 1);
    }
    atomicAdd(&apart, own);
    __syncthreads();
    if (threadIdx.x == 0) {
        int32_t sum = 0;
        for (int bin = 0; bin < BINS; ++bin) sum += abs(counts[bin]);
        pixel_difference[blockIdx.x] = apart;
        histogram_difference[blockIdx.x] = sum;
    }
}

void launch_gpu_implementation(void* pixel_difference, void* histogram_difference, void* first, void* second,
                               int64_t pairs, int64_t pixels) {
    compare_kernel<<<static_cast<unsigned>(pairs), THREADS>>>(
        static_cast<unsigned long long*>(pixel_difference), static_cast<int32_t*>(histogram_difference),
        static_cast<const uint8_t*>(first), static_cast<const uint8_t*>(second), pixels);
    check(cudaGetLastError());
}
