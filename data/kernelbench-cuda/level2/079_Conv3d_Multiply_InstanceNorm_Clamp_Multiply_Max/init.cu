// conv(x) * multiplier into scratch memory, one block per plane normalises, clamps and multiplies, then one thread per
// position goes over the channels.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct Times {
    const scalar_t* factor;
    __device__ float operator()(float sum, int64_t, int64_t channel) const { return sum * to_float(factor[channel]); }
};

struct ClampTimes {
    const scalar_t* factor;
    float low, high;
    __device__ float operator()(float value, int64_t, int64_t channel) const {
        return clamp(value, low, high) * to_float(factor[channel]);
    }
};

void launch_gpu_implementation(void* output, void* x, void* multiplier, void* conv_weight, int64_t batch_size,
                               int64_t in_channels, int64_t depth, int64_t height, int64_t width,
                               int64_t out_channels, int64_t kernel_size, float eps, float clamp_min,
                               float clamp_max) {
    const Conv shape = conv3d_shape(batch_size, in_channels, out_channels, {depth, height, width}, kernel_size);
    const int64_t points = shape.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_channels * points);
    conv(y, in(x), in(conv_weight), shape, Times{in(multiplier)});
    group_norm(y, y, Channels{batch_size, out_channels, points}, out_channels, Affine{}, eps,
               ClampTimes{in(multiplier), clamp_min, clamp_max});
    reduce_axis(out(output), y, AxisView{batch_size, out_channels, points}, Max(), Scaled{1.0f});
}
