// hardswish(conv(x) - subtrahend) into scratch memory, maxima of windows, then Mish in place.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/pool.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct SubtractHardswish {
    const scalar_t* bias;
    float subtrahend;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return hardswish(sum + to_float(bias[channel]) - subtrahend);
    }
};

struct Mish {
    __device__ float operator()(float v) const { return mish(v); }
};

void launch_gpu_implementation(void* output, void* x, void* conv_weight, void* conv_bias, int64_t batch_size,
                               int64_t in_channels, int64_t height, int64_t width, int64_t out_channels,
                               int64_t kernel_size, int64_t pool_size, float subtrahend) {
    const Conv shape = conv2d_shape(batch_size, in_channels, out_channels, height, width, kernel_size);
    const int64_t points = shape.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_channels * points);
    conv(y, in(x), in(conv_weight), shape, SubtractHardswish{in(conv_bias), subtrahend});
    const Pool windows = pool2d_shape(batch_size * out_channels, shape.output.h, shape.output.w, pool_size,
                                      pool_size);
    pool(out(output), y, windows, MaxPool());
    map(out(output), out(output), windows.planes * windows.output.count(), Mish());
}
