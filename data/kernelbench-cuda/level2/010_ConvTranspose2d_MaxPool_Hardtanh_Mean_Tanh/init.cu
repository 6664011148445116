// Transposed convolution and maxima of windows into scratch memory, clamped in place; one block per plane averages,
// tanh in place.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/pool.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct Clamp {
    float low, high;
    __device__ float operator()(float v) const { return clamp(v, low, high); }
};

struct Tanh {
    __device__ float operator()(float v) const { return tanhf(v); }
};

void launch_gpu_implementation(void* output, void* x, void* conv_transpose_weight, void* conv_transpose_bias,
                               int64_t batch_size, int64_t in_channels, int64_t height, int64_t width,
                               int64_t out_channels, int64_t kernel_size, int64_t stride, int64_t padding,
                               int64_t pool_size, int64_t pool_stride, float hardtanh_min, float hardtanh_max) {
    const Conv shape = conv_transpose2d_shape(batch_size, in_channels, out_channels, height, width, kernel_size,
                                              stride, padding);
    const Pool windows = pool2d_shape(batch_size * out_channels, shape.output.h, shape.output.w, pool_size,
                                      pool_stride);
    const int64_t pooled = windows.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(windows.planes * shape.output.count());
    scalar_t* maxima = workspace.take(windows.planes * pooled);
    conv_transpose(y, in(x), in(conv_transpose_weight), shape, Bias{in(conv_transpose_bias)});
    pool(maxima, y, windows, MaxPool());
    map(maxima, maxima, windows.planes * pooled, Clamp{hardtanh_min, hardtanh_max});
    average_planes(out(output), maxima, windows.planes, pooled);
    map(out(output), out(output), windows.planes, Tanh());
}
