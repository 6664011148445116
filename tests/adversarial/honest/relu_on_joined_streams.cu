// problem: level1/19
// does: forks to two non-blocking streams of its own and joins them by events
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

__global__ void relu(scalar_t* y, const scalar_t* x, int64_t n) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) y[i] = from_float(fmaxf(to_float(x[i]), 0.0f));
}

struct Fork {
    cudaStream_t streams[2];
    cudaEvent_t begin, done[2];
    Fork() {
        cudaEventCreateWithFlags(&begin, cudaEventDisableTiming);
        for (int i = 0; i < 2; ++i) {
            cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
            cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming);
        }
    }
};

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    static Fork fork;
    const int64_t n = batch_size * dim, half = n / 2;
    cudaEventRecord(fork.begin, 0);
    for (int i = 0; i < 2; ++i) {
        const int64_t first = i * half, count = i == 0 ? half : n - half;
        cudaStreamWaitEvent(fork.streams[i], fork.begin, 0);
        relu<<<unsigned((count + 255) / 256), 256, 0, fork.streams[i]>>>(
            static_cast<scalar_t*>(output) + first, static_cast<const scalar_t*>(x) + first, count);
        cudaEventRecord(fork.done[i], fork.streams[i]);
        cudaStreamWaitEvent(0, fork.done[i], 0);
    }
}
