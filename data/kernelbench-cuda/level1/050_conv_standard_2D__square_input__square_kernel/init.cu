// Convolution over two axes with a bias: one output per thread, the sum over input channels and window positions.
#include <kernelblaster/kernels/conv.cuh>

void launch_gpu_implementation(void* output, void* x, void* conv1_weight, void* conv1_bias, int64_t batch_size,
                               int64_t height, int64_t width, int64_t out_channels) {
    conv(out(output), in(x), in(conv1_weight), conv2d_shape(batch_size, 3, out_channels, height, width, 11, 4, 2),
         Bias{in(conv1_bias)});
}
