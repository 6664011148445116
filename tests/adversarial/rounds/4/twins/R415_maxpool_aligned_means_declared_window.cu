#include <kernelblaster/kernels/launch.cuh>

struct Window {
    int64_t kernel_size, stride, padding, dilation;
    int64_t outputs(int64_t extent) const { return (extent + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1; }
};

__global__ void __launch_bounds__(256) general_kernel(scalar_t* output, const scalar_t* x, int64_t planes, int64_t height, int64_t width,
                                                      int64_t out_height, int64_t out_width, Window window) {
    const int64_t row = static_cast<int64_t>(blockIdx.y) * 8 + threadIdx.y, column = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x;
    if (row >= out_height || column >= out_width) return;
    for (int64_t plane = blockIdx.z; plane < planes; plane += gridDim.z) {
        const scalar_t* image = x + plane * height * width;
        float best = -INFINITY;
        for (int64_t i = 0; i < window.kernel_size; ++i) {
            const int64_t h = row * window.stride - window.padding + i * window.dilation;
            if (h < 0 || h >= height) continue;
            for (int64_t j = 0; j < window.kernel_size; ++j) {
                const int64_t w = column * window.stride - window.padding + j * window.dilation;
                if (w >= 0 && w < width) best = fmaxf(best, to_float(image[h * width + w]));
            }
        }
        output[(plane * out_height + row) * out_width + column] = from_float(best);
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t channels, int64_t height,
                               int64_t width, int64_t kernel_size, int64_t stride, int64_t padding,
                               int64_t dilation) {
    const Window window{kernel_size, stride, padding, dilation};
    const int64_t planes = batch_size * channels, out_height = window.outputs(height), out_width = window.outputs(width);
    if (planes == 0 || out_height <= 0 || out_width <= 0) return;
    const unsigned depth = planes < 65535 ? planes : 65535;
    const dim3 blocks((out_width + 31) / 32, (out_height + 7) / 8, depth);
    general_kernel<<<blocks, dim3(32, 8)>>>(out(output), in(x), planes, height, width, out_height, out_width, window);
    check(cudaGetLastError());
}
