// scale * clamp(mish(conv_transpose(x)) + add_value), in the transposed convolution's epilogue.
#include <kernelblaster/kernels/conv.cuh>

struct MishAddClampScale {
    const scalar_t* bias;
    float added, scale;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return scale * clamp(mish(sum + to_float(bias[channel])) + added, -1.0f, 1.0f);
    }
};

void launch_gpu_implementation(void* output, void* x, void* conv_transpose_weight, void* conv_transpose_bias,
                               int64_t batch_size, int64_t in_channels, int64_t height, int64_t width,
                               int64_t out_channels, int64_t kernel_size, int64_t stride, int64_t padding,
                               int64_t output_padding, float add_value, float scale) {
    const Conv shape = conv_transpose2d_shape(batch_size, in_channels, out_channels, height, width, kernel_size,
                                              stride, padding, output_padding);
    conv_transpose(out(output), in(x), in(conv_transpose_weight), shape,
                   MishAddClampScale{in(conv_transpose_bias), add_value, scale});
}
