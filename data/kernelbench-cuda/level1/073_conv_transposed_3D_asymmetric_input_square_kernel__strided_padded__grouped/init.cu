// Transposed convolution over three axes: one output per thread, which gathers what the inputs would scatter to it.
#include <kernelblaster/kernels/conv.cuh>

void launch_gpu_implementation(void* output, void* x, void* conv_transpose3d_weight, int64_t batch_size,
                               int64_t in_channels, int64_t out_channels, int64_t depth, int64_t height,
                               int64_t width, int64_t kernel_size, int64_t stride, int64_t padding) {
    const Conv shape{batch_size, in_channels, out_channels, 1, {depth, height, width}, cube(kernel_size),
                     cube(stride), cube(padding), cube(1), {}};
    conv_transpose(out(output), in(x), in(conv_transpose3d_weight), with_transposed_output(shape), Plain());
}
