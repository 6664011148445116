// hardswish(conv(x)) into scratch memory, group norm in place, then one block per plane averages.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/pool.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct BiasHardswish {
    const scalar_t* bias;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return hardswish(sum + to_float(bias[channel]));
    }
};

void launch_gpu_implementation(void* output, void* x, void* conv_weight, void* conv_bias, void* group_norm_weight,
                               void* group_norm_bias, int64_t batch_size, int64_t in_channels, int64_t depth,
                               int64_t height, int64_t width, int64_t out_channels, int64_t kernel_size,
                               int64_t num_groups, float eps) {
    const Conv shape = conv3d_shape(batch_size, in_channels, out_channels, {depth, height, width}, kernel_size);
    const int64_t points = shape.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_channels * points);
    conv(y, in(x), in(conv_weight), shape, BiasHardswish{in(conv_bias)});
    group_norm(y, y, Channels{batch_size, out_channels, points}, num_groups,
               Affine{in(group_norm_weight), in(group_norm_bias)}, eps);
    average_planes(out(output), y, batch_size * out_channels, points);
}
