// Transposed convolution, then in place one thread per position: softmax over the channels, sigmoid.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/softmax.cuh>

struct Sigmoid {
    __device__ float operator()(float value, int64_t, int64_t) const { return sigmoid(value); }
};

void launch_gpu_implementation(void* output, void* x, void* conv_transpose_weight, void* conv_transpose_bias,
                               int64_t batch_size, int64_t in_channels, int64_t depth, int64_t height,
                               int64_t width, int64_t out_channels, int64_t kernel_size, int64_t stride,
                               int64_t padding, int64_t output_padding) {
    const Conv shape = conv_transpose3d_shape(batch_size, in_channels, out_channels, {depth, height, width},
                                              kernel_size, stride, padding, output_padding);
    conv_transpose(out(output), in(x), in(conv_transpose_weight), shape, Bias{in(conv_transpose_bias)});
    softmax_channels(out(output), out(output), AxisView{batch_size, out_channels, shape.output.count()}, Sigmoid());
}
