// Averages into scratch memory, transposed convolution and clamp into more of it, then softmax by one block per channel.
#include <kernelblaster/kernels/pool.cuh>
#include <kernelblaster/kernels/softmax.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct BiasClamp {
    const scalar_t* bias;
    float low, high;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return clamp(sum + to_float(bias[channel]), low, high);
    }
};

// A line of the softmax is a channel of a sample.
struct ScaleChannel {
    const scalar_t* scale;
    int64_t channels;
    __device__ float operator()(float value, int64_t, int64_t line) const {
        return value * to_float(scale[line % channels]);
    }
};

void launch_gpu_implementation(void* output, void* x, void* scale, void* conv_transpose_weight,
                               void* conv_transpose_bias, int64_t batch_size, int64_t in_channels, int64_t depth,
                               int64_t height, int64_t width, int64_t out_channels, int64_t kernel_size,
                               int64_t stride, int64_t padding, int64_t output_padding, int64_t pool_kernel_size,
                               float clamp_min, float clamp_max) {
    const Pool windows =
        pool3d_shape(batch_size * in_channels, {depth, height, width}, pool_kernel_size, pool_kernel_size);
    const Conv shape = conv_transpose3d_shape(batch_size, in_channels, out_channels, windows.output, kernel_size,
                                              stride, padding, output_padding);
    const int64_t lines = batch_size * out_channels, points = shape.output.count();
    Workspace workspace;
    scalar_t* averages = workspace.take(windows.planes * windows.output.count());
    scalar_t* y = workspace.take(lines * points);
    pool(averages, in(x), windows, AveragePool());
    conv_transpose(y, averages, in(conv_transpose_weight), shape,
                   BiasClamp{in(conv_transpose_bias), clamp_min, clamp_max});
    softmax(out(output), y, AxisView{lines, points, 1}, SoftmaxValue(), ScaleChannel{in(scale), out_channels});
}
