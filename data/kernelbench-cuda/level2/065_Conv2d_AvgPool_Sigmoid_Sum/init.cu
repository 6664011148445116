// Convolution and means of windows into scratch memory, sigmoid in place, then one thread per window sums over the
// channels.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/pool.cuh>
#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct Sigmoid {
    __device__ float operator()(float v) const { return sigmoid(v); }
};

void launch_gpu_implementation(void* output, void* x, void* conv_weight, void* conv_bias, int64_t batch_size,
                               int64_t in_channels, int64_t height, int64_t width, int64_t out_channels,
                               int64_t kernel_size, int64_t pool_size) {
    const Conv shape = conv2d_shape(batch_size, in_channels, out_channels, height, width, kernel_size);
    const Pool windows = pool2d_shape(batch_size * out_channels, shape.output.h, shape.output.w, pool_size,
                                      pool_size);
    const int64_t pooled = windows.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_channels * shape.output.count());
    scalar_t* means = workspace.take(windows.planes * pooled);
    conv(y, in(x), in(conv_weight), shape, Bias{in(conv_bias)});
    pool(means, y, windows, AveragePool());
    map(means, means, windows.planes * pooled, Sigmoid());
    reduce_axis(out(output), means, AxisView{batch_size, out_channels, pooled}, Sum(), Scaled{1.0f});
}
