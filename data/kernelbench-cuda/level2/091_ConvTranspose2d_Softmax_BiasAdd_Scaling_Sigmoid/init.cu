// Transposed convolution, then in place one thread per pixel: softmax over the channels, bias, scale, sigmoid.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/softmax.cuh>

struct BiasScaleSigmoid {
    const scalar_t* bias;
    float factor;
    __device__ float operator()(float value, int64_t, int64_t channel) const {
        return sigmoid((value + to_float(bias[channel])) * factor);
    }
};

void launch_gpu_implementation(void* output, void* x, void* bias, void* conv_transpose_weight,
                               void* conv_transpose_bias, int64_t batch_size, int64_t in_channels, int64_t height,
                               int64_t width, int64_t out_channels, int64_t kernel_size, int64_t stride,
                               int64_t padding, int64_t output_padding, float scaling_factor) {
    const Conv shape = conv_transpose2d_shape(batch_size, in_channels, out_channels, height, width, kernel_size,
                                              stride, padding, output_padding);
    conv_transpose(out(output), in(x), in(conv_transpose_weight), shape, Bias{in(conv_transpose_bias)});
    softmax_channels(out(output), out(output), AxisView{batch_size, out_channels, shape.output.count()},
                     BiasScaleSigmoid{in(bias), scaling_factor});
}
