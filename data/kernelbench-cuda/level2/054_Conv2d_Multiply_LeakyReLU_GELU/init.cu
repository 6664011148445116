// gelu(leaky_relu(conv(x) * multiplier)), in the convolution's epilogue.
#include <kernelblaster/kernels/conv.cuh>

struct ScaleLeakyGelu {
    const scalar_t *bias, *factor;
    float slope;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return gelu(leaky_relu((sum + to_float(bias[channel])) * to_float(factor[channel]), slope));
    }
};

void launch_gpu_implementation(void* output, void* x, void* multiplier, void* conv_weight, void* conv_bias,
                               int64_t batch_size, int64_t in_channels, int64_t height, int64_t width,
                               int64_t out_channels, int64_t kernel_size, float negative_slope) {
    const Conv shape = conv2d_shape(batch_size, in_channels, out_channels, height, width, kernel_size);
    conv(out(output), in(x), in(conv_weight), shape, ScaleLeakyGelu{in(conv_bias), in(multiplier), negative_slope});
}
