// Transposed convolution over one axis: one output per thread, which gathers what the inputs would scatter to it.
#include <kernelblaster/kernels/conv.cuh>

void launch_gpu_implementation(void* output, void* x, void* conv1d_transpose_weight, int64_t batch_size,
                               int64_t in_channels, int64_t out_channels, int64_t length, int64_t kernel_size,
                               int64_t dilation) {
    const Conv shape{batch_size, in_channels, out_channels, 1, {1, 1, length}, {1, 1, kernel_size},
                     cube(1), cube(0), {1, 1, dilation}, {}};
    conv_transpose(out(output), in(x), in(conv1d_transpose_weight), with_transposed_output(shape), Plain());
}
