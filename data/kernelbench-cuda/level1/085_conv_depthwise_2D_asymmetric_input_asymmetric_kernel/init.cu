// Depthwise convolution over two axes: one output per thread, the sum over the window in its own channel.
#include <kernelblaster/kernels/conv.cuh>

void launch_gpu_implementation(void* output, void* x, void* conv2d_weight, int64_t batch_size, int64_t in_channels,
                               int64_t height, int64_t width, int64_t kernel_h, int64_t kernel_w) {
    const Conv shape{batch_size, in_channels, in_channels, in_channels, {1, height, width}, {1, kernel_h, kernel_w},
                     cube(1), cube(0), cube(1), {}};
    conv(out(output), in(x), in(conv2d_weight), with_output(shape), Plain());
}
