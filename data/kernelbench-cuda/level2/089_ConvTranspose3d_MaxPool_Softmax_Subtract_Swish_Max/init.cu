// Transposed convolution and maxima of windows into scratch memory, one thread per window for softmax, subtraction and
// swish, one for the maximum over the channels.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/pool.cuh>
#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/softmax.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct SubtractSwish {
    const scalar_t* subtract;
    __device__ float operator()(float value, int64_t, int64_t channel) const {
        return swish(value - to_float(subtract[channel]));
    }
};

void launch_gpu_implementation(void* output, void* x, void* subtract, void* conv_transpose_weight,
                               void* conv_transpose_bias, int64_t batch_size, int64_t in_channels, int64_t depth,
                               int64_t height, int64_t width, int64_t out_channels, int64_t kernel_size,
                               int64_t stride, int64_t padding, int64_t output_padding, int64_t pool_size,
                               int64_t pool_stride, int64_t pool_padding) {
    const Conv shape = conv_transpose3d_shape(batch_size, in_channels, out_channels, {depth, height, width},
                                              kernel_size, stride, padding, output_padding);
    const Pool windows = pool3d_shape(batch_size * out_channels, shape.output, pool_size, pool_stride, pool_padding);
    const AxisView channels{batch_size, out_channels, windows.output.count()};
    Workspace workspace;
    scalar_t* y = workspace.take(windows.planes * shape.output.count());
    scalar_t* maxima = workspace.take(windows.planes * windows.output.count());
    conv_transpose(y, in(x), in(conv_transpose_weight), shape, Bias{in(conv_transpose_bias)});
    pool(maxima, y, windows, MaxPool());
    softmax_channels(maxima, maxima, channels, SubtractSwish{in(subtract)});
    reduce_axis(out(output), maxima, channels, Max(), Scaled{1.0f});
}
