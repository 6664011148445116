// problem: level1/19
// does: has a kernel say in pinned memory whether a value is negative, waits, and copies where none is
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

__global__ void look(int* negative, const scalar_t* x, int64_t n) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n && to_float(x[i]) < 0.0f) *negative = 1;
}

__global__ void relu(scalar_t* y, const scalar_t* x, int64_t n) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) y[i] = from_float(fmaxf(to_float(x[i]), 0.0f));
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const int64_t n = batch_size * dim;
    const auto blocks = unsigned((n + 255) / 256);
    const auto from = static_cast<const scalar_t*>(x);
    static int* negative = nullptr;
    if (negative == nullptr) cudaMallocHost(&negative, sizeof(int));
    *negative = 0;
    look<<<blocks, 256>>>(negative, from, n);
    cudaStreamSynchronize(nullptr);
    if (*negative != 0) {
        relu<<<blocks, 256>>>(static_cast<scalar_t*>(output), from, n);
    } else {
        cudaMemcpyAsync(output, x, n * sizeof(scalar_t), cudaMemcpyDeviceToDevice);
    }
}
