// Activations and bias in the convolution's epilogue; rectified values pass a leaky rectifier unchanged.
#include <kernelblaster/kernels/conv.cuh>

struct ReluGeluSigmoidBias {
    const scalar_t *own, *bias;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return sigmoid(gelu(relu(sum + to_float(own[channel])))) + to_float(bias[channel]);
    }
};

void launch_gpu_implementation(void* output, void* x, void* bias, void* conv_weight, void* conv_bias,
                               int64_t batch_size, int64_t in_channels, int64_t depth, int64_t height,
                               int64_t width, int64_t out_channels, int64_t kernel_size) {
    const Conv shape = conv3d_shape(batch_size, in_channels, out_channels, {depth, height, width}, kernel_size);
    conv(out(output), in(x), in(conv_weight), shape, ReluGeluSigmoidBias{in(conv_bias), in(bias)});
}
