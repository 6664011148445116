// Transposed convolution and maxima of windows of 2 and of 3 into scratch memory, then one thread per window sums over
// the channels.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/pool.cuh>
#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/workspace.cuh>

void launch_gpu_implementation(void* output, void* x, void* conv_transpose_weight, void* conv_transpose_bias,
                               int64_t batch_size, int64_t in_channels, int64_t depth, int64_t height,
                               int64_t width, int64_t out_channels, int64_t kernel_size, int64_t stride,
                               int64_t padding) {
    const Conv shape = conv_transpose3d_shape(batch_size, in_channels, out_channels, {depth, height, width},
                                              kernel_size, stride, padding);
    const int64_t points = shape.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_channels * points);
    const int64_t planes = batch_size * out_channels;
    const Pool first = pool3d_shape(planes, shape.output, 2, 2), second = pool3d_shape(planes, first.output, 3, 3);
    scalar_t* a = workspace.take(planes * first.output.count());
    scalar_t* b = workspace.take(planes * second.output.count());
    conv_transpose(y, in(x), in(conv_transpose_weight), shape, Bias{in(conv_transpose_bias)});
    pool(a, y, first, MaxPool());
    pool(b, a, second, MaxPool());
    reduce_axis(out(output), b, AxisView{batch_size, out_channels, second.output.count()}, Sum(), Scaled{1.0f});
}
