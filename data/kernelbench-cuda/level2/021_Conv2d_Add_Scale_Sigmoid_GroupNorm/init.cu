// sigmoid((conv(x) + bias) * scale) into scratch memory, then one block per sample and group normalises.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct BiasScaleSigmoid {
    const scalar_t *own, *bias, *scale;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        const float shifted = sum + to_float(own[channel]) + to_float(bias[channel]);
        return sigmoid(shifted * to_float(scale[channel]));
    }
};

void launch_gpu_implementation(void* output, void* x, void* bias, void* scale, void* conv_weight, void* conv_bias,
                               void* group_norm_weight, void* group_norm_bias, int64_t batch_size,
                               int64_t in_channels, int64_t height, int64_t width, int64_t out_channels,
                               int64_t kernel_size, int64_t num_groups, float eps) {
    const Conv shape = conv2d_shape(batch_size, in_channels, out_channels, height, width, kernel_size);
    const int64_t points = shape.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_channels * points);
    conv(y, in(x), in(conv_weight), shape, BiasScaleSigmoid{in(conv_bias), in(bias), in(scale)});
    group_norm(out(output), y, Channels{batch_size, out_channels, points}, num_groups,
               Affine{in(group_norm_weight), in(group_norm_bias)}, eps);
}
