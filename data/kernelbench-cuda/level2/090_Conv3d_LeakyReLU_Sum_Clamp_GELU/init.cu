// Leaky rectifier, bias, clamp and GELU, in the convolution's epilogue.
#include <kernelblaster/kernels/conv.cuh>

struct LeakyAddClampGelu {
    const scalar_t *own, *added;
    float slope;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        const float y = leaky_relu(sum + to_float(own[channel]), slope) + to_float(added[channel]);
        return gelu(clamp(y, -1.0f, 1.0f));
    }
};

void launch_gpu_implementation(void* output, void* x, void* sum_tensor, void* conv_weight, void* conv_bias,
                               int64_t batch_size, int64_t in_channels, int64_t depth, int64_t height,
                               int64_t width, int64_t out_channels, int64_t kernel_size, float negative_slope) {
    const Conv shape = conv3d_shape(batch_size, in_channels, out_channels, {depth, height, width}, kernel_size);
    conv(out(output), in(x), in(conv_weight), shape,
         LeakyAddClampGelu{in(conv_bias), in(sum_tensor), negative_slope});
}
