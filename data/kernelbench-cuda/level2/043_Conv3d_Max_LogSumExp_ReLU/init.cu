// Convolution and maxima of 2 x 2 x 2 windows into scratch memory, then one thread per window goes over the channels.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/pool.cuh>
#include <kernelblaster/kernels/softmax.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct Relu {
    __device__ float operator()(float v) const { return relu(v); }
};

void launch_gpu_implementation(void* output, void* x, void* conv_weight, void* conv_bias, int64_t batch_size,
                               int64_t in_channels, int64_t depth, int64_t height, int64_t width,
                               int64_t out_channels, int64_t kernel_size, int64_t stride, int64_t padding) {
    const Conv shape = conv3d_shape(batch_size, in_channels, out_channels, {depth, height, width}, kernel_size,
                                    stride, padding);
    const Pool windows = pool3d_shape(batch_size * out_channels, shape.output, 2, 2);
    const int64_t pooled = windows.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(windows.planes * shape.output.count());
    scalar_t* maxima = workspace.take(windows.planes * pooled);
    conv(y, in(x), in(conv_weight), shape, Bias{in(conv_bias)});
    pool(maxima, y, windows, MaxPool());
    logsumexp_channels(out(output), maxima, AxisView{batch_size, out_channels, pooled}, Relu());
}
