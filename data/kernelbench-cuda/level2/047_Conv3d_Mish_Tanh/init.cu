// tanh(mish(conv(x))), in the convolution's epilogue.
#include <kernelblaster/kernels/conv.cuh>

struct MishTanh {
    const scalar_t* bias;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return tanhf(mish(sum + to_float(bias[channel])));
    }
};

void launch_gpu_implementation(void* output, void* x, void* conv_weight, void* conv_bias, int64_t batch_size,
                               int64_t in_channels, int64_t depth, int64_t height, int64_t width,
                               int64_t out_channels, int64_t kernel_size) {
    const Conv shape = conv3d_shape(batch_size, in_channels, out_channels, {depth, height, width}, kernel_size);
    conv(out(output), in(x), in(conv_weight), shape, MishTanh{in(conv_bias)});
}
