// Convolution over three axes: one output per thread, the sum over input channels and window positions.
#include <kernelblaster/kernels/conv.cuh>

void launch_gpu_implementation(void* output, void* x, void* conv3d_weight, int64_t batch_size, int64_t in_channels,
                               int64_t out_channels, int64_t depth, int64_t height, int64_t width, int64_t kernel_d,
                               int64_t kernel_h, int64_t kernel_w) {
    const Conv shape{batch_size, in_channels, out_channels, 1, {depth, height, width}, {kernel_d, kernel_h, kernel_w},
                     cube(1), cube(0), cube(1), {}};
    conv(out(output), in(x), in(conv3d_weight), with_output(shape), Plain());
}
