// Transposed convolution over two axes: one output per thread, which gathers what the inputs would scatter to it.
#include <kernelblaster/kernels/conv.cuh>

void launch_gpu_implementation(void* output, void* x, void* conv_transpose2d_weight, int64_t batch_size,
                               int64_t in_channels, int64_t out_channels, int64_t height, int64_t width,
                               int64_t kernel_h, int64_t kernel_w, int64_t stride_h, int64_t stride_w,
                               int64_t padding_h, int64_t padding_w, int64_t dilation_h, int64_t dilation_w,
                               int64_t groups) {
    const Conv shape{batch_size, in_channels, out_channels, groups, {1, height, width}, {1, kernel_h, kernel_w},
                     {1, stride_h, stride_w}, {0, padding_h, padding_w}, {1, dilation_h, dilation_w}, {}};
    conv_transpose(out(output), in(x), in(conv_transpose2d_weight), with_transposed_output(shape), Plain());
}
