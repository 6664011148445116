// (min(conv(x), bound) + bias) * scaling_factor, in the convolution's epilogue.
#include <kernelblaster/kernels/conv.cuh>

struct MinBiasScale {
    const scalar_t *own, *bias;
    float bound, factor;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return (fminf(sum + to_float(own[channel]), bound) + to_float(bias[channel])) * factor;
    }
};

void launch_gpu_implementation(void* output, void* x, void* bias, void* conv_weight, void* conv_bias,
                               int64_t batch_size, int64_t in_channels, int64_t height, int64_t width,
                               int64_t out_channels, int64_t kernel_size, float bound, float scaling_factor) {
    const Conv shape = conv2d_shape(batch_size, in_channels, out_channels, height, width, kernel_size);
    conv(out(output), in(x), in(conv_weight), shape, MinBiasScale{in(conv_bias), in(bias), bound, scaling_factor});
}
