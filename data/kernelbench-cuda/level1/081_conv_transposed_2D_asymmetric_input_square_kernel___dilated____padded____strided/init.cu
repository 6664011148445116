// Transposed convolution over two axes: one output per thread, which gathers what the inputs would scatter to it.
#include <kernelblaster/kernels/conv.cuh>

void launch_gpu_implementation(void* output, void* x, void* conv_transpose2d_weight, int64_t batch_size,
                               int64_t in_channels, int64_t out_channels, int64_t height, int64_t width,
                               int64_t kernel_size, int64_t stride, int64_t padding, int64_t dilation) {
    const Conv shape{batch_size, in_channels, out_channels, 1, {1, height, width}, {1, kernel_size, kernel_size},
                     {1, stride, stride}, {0, padding, padding}, {1, dilation, dilation}, {}};
    conv_transpose(out(output), in(x), in(conv_transpose2d_weight), with_transposed_output(shape), Plain());
}
