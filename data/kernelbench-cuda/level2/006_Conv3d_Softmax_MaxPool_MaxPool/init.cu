// Convolution into scratch memory, one thread per position for the softmax over the channels in place, then two
// poolings.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/pool.cuh>
#include <kernelblaster/kernels/softmax.cuh>
#include <kernelblaster/kernels/workspace.cuh>

void launch_gpu_implementation(void* output, void* x, void* conv_weight, void* conv_bias, int64_t batch_size,
                               int64_t in_channels, int64_t depth, int64_t height, int64_t width,
                               int64_t out_channels, int64_t kernel_size, int64_t pool_size) {
    const Conv shape = conv3d_shape(batch_size, in_channels, out_channels, {depth, height, width}, kernel_size);
    const int64_t points = shape.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_channels * points);
    const int64_t planes = batch_size * out_channels;
    const Pool first = pool3d_shape(planes, shape.output, pool_size, pool_size);
    const Pool second = pool3d_shape(planes, first.output, pool_size, pool_size);
    scalar_t* maxima = workspace.take(planes * first.output.count());
    conv(y, in(x), in(conv_weight), shape, Bias{in(conv_bias)});
    softmax_channels(y, y, AxisView{batch_size, out_channels, points});
    pool(maxima, y, first, MaxPool());
    pool(out(output), maxima, second, MaxPool());
}
