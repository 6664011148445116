// Convolution into scratch memory, one thread per pixel for the minimum over the depth, one per pixel for the softmax
// over the channels in place.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/softmax.cuh>
#include <kernelblaster/kernels/workspace.cuh>

void launch_gpu_implementation(void* output, void* x, void* conv_weight, void* conv_bias, int64_t batch_size,
                               int64_t in_channels, int64_t depth, int64_t height, int64_t width,
                               int64_t out_channels, int64_t kernel_size) {
    const Conv shape = conv3d_shape(batch_size, in_channels, out_channels, {depth, height, width}, kernel_size);
    const int64_t points = shape.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_channels * points);
    const int64_t pixels = shape.output.h * shape.output.w;
    conv(y, in(x), in(conv_weight), shape, Bias{in(conv_bias)});
    reduce_axis(out(output), y, AxisView{batch_size * out_channels, shape.output.d, pixels}, Min(), Scaled{1.0f});
    softmax_channels(out(output), out(output), AxisView{batch_size, out_channels, pixels});
}
