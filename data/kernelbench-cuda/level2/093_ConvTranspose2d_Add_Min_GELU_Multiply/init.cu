// multiply_value * gelu(min(conv_transpose(x) + add_value, 0)), in the transposed convolution's epilogue.
#include <kernelblaster/kernels/conv.cuh>

struct AddMinGeluScale {
    const scalar_t* bias;
    float added, factor;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return factor * gelu(fminf(sum + to_float(bias[channel]) + added, 0.0f));
    }
};

void launch_gpu_implementation(void* output, void* x, void* conv_transpose_weight, void* conv_transpose_bias,
                               int64_t batch_size, int64_t in_channels, int64_t height, int64_t width,
                               int64_t out_channels, int64_t kernel_size, int64_t stride, float add_value,
                               float multiply_value) {
    const Conv shape = conv_transpose2d_shape(batch_size, in_channels, out_channels, height, width, kernel_size,
                                              stride);
    conv_transpose(out(output), in(x), in(conv_transpose_weight), shape,
                   AddMinGeluScale{in(conv_transpose_bias), add_value, multiply_value});
}
