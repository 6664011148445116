// swish(conv_transpose(x)) into scratch memory, then one block per sample and group normalises and applies HardSwish.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct BiasSwish {
    const scalar_t* bias;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return swish(sum + to_float(bias[channel]));
    }
};

struct Hardswish {
    __device__ float operator()(float value, int64_t, int64_t) const { return hardswish(value); }
};

void launch_gpu_implementation(void* output, void* x, void* conv_transpose_weight, void* conv_transpose_bias,
                               void* group_norm_weight, void* group_norm_bias, int64_t batch_size,
                               int64_t in_channels, int64_t depth, int64_t height, int64_t width,
                               int64_t out_channels, int64_t kernel_size, int64_t stride, int64_t padding,
                               int64_t num_groups, float eps) {
    const Conv shape = conv_transpose3d_shape(batch_size, in_channels, out_channels, {depth, height, width},
                                              kernel_size, stride, padding);
    const int64_t points = shape.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_channels * points);
    conv_transpose(y, in(x), in(conv_transpose_weight), shape, BiasSwish{in(conv_transpose_bias)});
    group_norm(out(output), y, Channels{batch_size, out_channels, points}, num_groups,
               Affine{in(group_norm_weight), in(group_norm_bias)}, eps, Hardswish());
}
