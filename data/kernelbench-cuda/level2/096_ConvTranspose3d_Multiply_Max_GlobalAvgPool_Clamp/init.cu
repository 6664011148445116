// Scaled transposed convolution and maxima of windows into scratch memory, one block per plane averages, clamped in
// place.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/pool.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct BiasScale {
    const scalar_t* bias;
    float factor;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return (sum + to_float(bias[channel])) * factor;
    }
};

struct Clamp {
    __device__ float operator()(float v) const { return clamp(v, 0.0f, 1.0f); }
};

void launch_gpu_implementation(void* output, void* x, void* conv_transpose_weight, void* conv_transpose_bias,
                               int64_t batch_size, int64_t in_channels, int64_t depth, int64_t height,
                               int64_t width, int64_t out_channels, int64_t kernel_size, int64_t stride,
                               int64_t padding, int64_t pool_size, float scale) {
    const Conv shape = conv_transpose3d_shape(batch_size, in_channels, out_channels, {depth, height, width},
                                              kernel_size, stride, padding);
    const Pool windows = pool3d_shape(batch_size * out_channels, shape.output, pool_size, pool_size);
    const int64_t pooled = windows.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(windows.planes * shape.output.count());
    scalar_t* maxima = workspace.take(windows.planes * pooled);
    conv_transpose(y, in(x), in(conv_transpose_weight), shape, BiasScale{in(conv_transpose_bias), scale});
    pool(maxima, y, windows, MaxPool());
    average_planes(out(output), maxima, windows.planes, pooled);
    map(out(output), out(output), windows.planes, Clamp());
}
