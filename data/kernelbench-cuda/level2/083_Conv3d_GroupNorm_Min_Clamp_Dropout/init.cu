// Convolution into scratch memory, then one block per sample and group normalises, bounds and clamps.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct MinClamp {
    float bound, low, high;
    __device__ float operator()(float value, int64_t, int64_t) const { return clamp(fminf(value, bound), low, high); }
};

void launch_gpu_implementation(void* output, void* x, void* conv_weight, void* conv_bias, void* norm_weight,
                               void* norm_bias, int64_t batch_size, int64_t in_channels, int64_t depth,
                               int64_t height, int64_t width, int64_t out_channels, int64_t kernel_size,
                               int64_t num_groups, float eps, float bound, float clamp_min, float clamp_max) {
    const Conv shape = conv3d_shape(batch_size, in_channels, out_channels, {depth, height, width}, kernel_size);
    const int64_t points = shape.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_channels * points);
    conv(y, in(x), in(conv_weight), shape, Bias{in(conv_bias)});
    group_norm(out(output), y, Channels{batch_size, out_channels, points}, num_groups,
               Affine{in(norm_weight), in(norm_bias)}, eps, MinClamp{bound, clamp_min, clamp_max});
}
