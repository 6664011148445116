// problem: level1/47
// does: float atomics into a cleared workspace, finished by a second kernel; its last bits change from call to call
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

__global__ void add(float* total, const scalar_t* x, int64_t rows, int64_t cols, int64_t slice) {
    const int64_t col = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (col >= cols) return;
    const int64_t first = blockIdx.z * slice, last = min(first + slice, rows);
    float sum = 0.0f;
    for (int64_t i = first; i < last; ++i) sum += to_float(x[(blockIdx.y * rows + i) * cols + col]);
    atomicAdd(total + blockIdx.y * cols + col, sum);
}

__global__ void store(scalar_t* y, const float* total, int64_t n) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) y[i] = from_float(total[i]);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim1, int64_t dim2) {
    static float* total = nullptr;
    static int64_t held = 0;
    const int64_t n = batch_size * dim2, slices = 8, slice = (dim1 + slices - 1) / slices;
    if (held < n) {
        cudaFree(total);
        cudaMalloc(&total, n * sizeof(float));
        held = n;
    }
    cudaMemsetAsync(total, 0, n * sizeof(float));
    add<<<dim3(unsigned((dim2 + 127) / 128), unsigned(batch_size), slices), 128>>>(
        total, static_cast<const scalar_t*>(x), dim1, dim2, slice);
    store<<<unsigned((n + 255) / 256), 256>>>(static_cast<scalar_t*>(output), total, n);
}
