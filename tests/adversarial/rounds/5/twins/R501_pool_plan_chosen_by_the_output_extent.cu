#include <kernelblaster/kernels/launch.cuh>

struct Window {
    int64_t length, out_length, kernel_size, stride, padding, dilation;
};

// Any window: one output per thread.
__global__ void __launch_bounds__(256) general_kernel(scalar_t* output, const scalar_t* x, int64_t rows, Window q) {
    const int64_t column = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
    if (column >= q.out_length) return;
    const int64_t start = column * q.stride - q.padding;
    for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
        const scalar_t* from = x + row * q.length;
        float best = -INFINITY;
        for (int64_t j = 0; j < q.kernel_size; ++j) {
            const int64_t at = start + j * q.dilation;
            if (at >= 0 && at < q.length) best = fmaxf(best, to_float(from[at]));
        }
        output[row * q.out_length + column] = from_float(best);
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t channels, int64_t length,
                               int64_t kernel_size, int64_t stride, int64_t padding, int64_t dilation) {
    const int64_t reach = length + 2 * padding - dilation * (kernel_size - 1) - 1;
    const int64_t rows = batch_size * channels, out_length = reach / stride + 1;
    if (rows == 0 || reach < 0) return;
    const Window q{length, out_length, kernel_size, stride, padding, dilation};
    const unsigned depth = rows < 65535 ? rows : 65535;
    general_kernel<<<dim3((out_length + 255) / 256, depth), 256>>>(out(output), in(x), rows, q);
    check(cudaGetLastError());
}
