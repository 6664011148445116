// (y + bias + y) * y + y with y = conv_transpose(x), in the transposed convolution's epilogue.
#include <kernelblaster/kernels/conv.cuh>

struct AddTimesAdd {
    const scalar_t *own, *bias;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        const float y = sum + to_float(own[channel]);
        return (2.0f * y + to_float(bias[channel])) * y + y;
    }
};

void launch_gpu_implementation(void* output, void* x, void* bias, void* conv_transpose_weight,
                               void* conv_transpose_bias, int64_t batch_size, int64_t in_channels, int64_t depth,
                               int64_t height, int64_t width, int64_t out_channels, int64_t kernel_size,
                               int64_t stride, int64_t padding, int64_t output_padding) {
    const Conv shape = conv_transpose3d_shape(batch_size, in_channels, out_channels, {depth, height, width},
                                              kernel_size, stride, padding, output_padding);
    conv_transpose(out(output), in(x), in(conv_transpose_weight), shape,
                   AddTimesAdd{in(conv_transpose_bias), in(bias)});
}
