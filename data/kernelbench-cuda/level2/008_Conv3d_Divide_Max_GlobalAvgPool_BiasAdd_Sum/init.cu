// Convolution and maxima of windows into scratch memory, one block per plane averages; bias and sum go over the few
// averages.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/elementwise.cuh>
#include <kernelblaster/kernels/pool.cuh>
#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct BiasDivide {
    const scalar_t* bias;
    float divisor;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return (sum + to_float(bias[channel])) / divisor;
    }
};

struct AddBias {
    const scalar_t *means, *bias;
    int64_t channels;
    __device__ float operator()(int64_t index) const {
        return to_float(means[index]) + to_float(bias[index % channels]);
    }
};

void launch_gpu_implementation(void* output, void* x, void* bias, void* conv_weight, void* conv_bias,
                               int64_t batch_size, int64_t in_channels, int64_t depth, int64_t height,
                               int64_t width, int64_t out_channels, int64_t kernel_size, int64_t pool_size,
                               float divisor) {
    const Conv shape = conv3d_shape(batch_size, in_channels, out_channels, {depth, height, width}, kernel_size);
    const Pool windows = pool3d_shape(batch_size * out_channels, shape.output, pool_size, pool_size);
    const int64_t pooled = windows.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(windows.planes * shape.output.count());
    scalar_t* maxima = workspace.take(windows.planes * pooled);
    scalar_t* means = workspace.take(windows.planes);
    conv(y, in(x), in(conv_weight), shape, BiasDivide{in(conv_bias), divisor});
    pool(maxima, y, windows, MaxPool());
    average_planes(means, maxima, windows.planes, pooled);
    generate(means, windows.planes, AddBias{means, in(bias), out_channels});
    reduce_axis(out(output), means, AxisView{batch_size, out_channels, 1}, Sum(), Scaled{1.0f});
}
