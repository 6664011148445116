// Convolution into scratch memory, group norm and scale in place, maxima of windows, clamped in place.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/pool.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct ScaleChannel {
    const scalar_t* scale;
    __device__ float operator()(float value, int64_t, int64_t channel) const {
        return value * to_float(scale[channel]);
    }
};

struct Clamp {
    float low, high;
    __device__ float operator()(float v) const { return clamp(v, low, high); }
};

void launch_gpu_implementation(void* output, void* x, void* scale, void* conv_weight, void* conv_bias,
                               void* group_norm_weight, void* group_norm_bias, int64_t batch_size,
                               int64_t in_channels, int64_t height, int64_t width, int64_t out_channels,
                               int64_t kernel_size, int64_t num_groups, int64_t pool_size, float eps,
                               float clamp_min, float clamp_max) {
    const Conv shape = conv2d_shape(batch_size, in_channels, out_channels, height, width, kernel_size);
    const int64_t points = shape.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_channels * points);
    conv(y, in(x), in(conv_weight), shape, Bias{in(conv_bias)});
    group_norm(y, y, Channels{batch_size, out_channels, points}, num_groups,
               Affine{in(group_norm_weight), in(group_norm_bias)}, eps, ScaleChannel{in(scale)});
    const Pool windows = pool2d_shape(batch_size * out_channels, shape.output.h, shape.output.w, pool_size,
                                      pool_size);
    pool(out(output), y, windows, MaxPool());
    map(out(output), out(output), windows.planes * windows.output.count(), Clamp{clamp_min, clamp_max});
}
