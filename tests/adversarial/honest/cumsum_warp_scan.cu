// problem: level1/89
// does: one warp per row, scans of 32 by shuffles
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

__global__ void scan(scalar_t* y, const scalar_t* x, int64_t rows, int64_t n) {
    const int64_t row = int64_t(blockIdx.x) * 4 + threadIdx.x / 32;
    if (row >= rows) return;
    const int lane = threadIdx.x % 32;
    float carry = 0.0f;
    for (int64_t start = 0; start < n; start += 32) {
        float value = start + lane < n ? to_float(x[row * n + start + lane]) : 0.0f;
        for (int o = 1; o < 32; o *= 2) {
            const float other = __shfl_up_sync(0xffffffffu, value, o);
            if (lane >= o) value += other;
        }
        if (start + lane < n) y[row * n + start + lane] = from_float(carry + value);
        carry += __shfl_sync(0xffffffffu, value, 31);
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    scan<<<unsigned((batch_size + 3) / 4), 128>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), batch_size, dim);
}
