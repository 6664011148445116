// max(conv_transpose(x), clamp_min) / divisor, in the transposed convolution's epilogue.
#include <kernelblaster/kernels/conv.cuh>

struct ClampDivide {
    const scalar_t* bias;
    float low, divisor;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return fmaxf(sum + to_float(bias[channel]), low) / divisor;
    }
};

void launch_gpu_implementation(void* output, void* x, void* conv_transpose_weight, void* conv_transpose_bias,
                               int64_t batch_size, int64_t in_channels, int64_t depth, int64_t height,
                               int64_t width, int64_t out_channels, int64_t kernel_size, int64_t stride,
                               int64_t padding, float clamp_min, float divisor) {
    const Conv shape = conv_transpose3d_shape(batch_size, in_channels, out_channels, {depth, height, width},
                                              kernel_size, stride, padding);
    conv_transpose(out(output), in(x), in(conv_transpose_weight), shape,
                   ClampDivide{in(conv_transpose_bias), clamp_min, divisor});
}
