// Transposed convolution into scratch memory, batch norm and tanh in place, maxima of 2 x 2 windows, group norm in
// place.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/pool.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct Tanh {
    __device__ float operator()(float value, int64_t, int64_t) const { return tanhf(value); }
};

void launch_gpu_implementation(void* output, void* x, void* conv_transpose_weight, void* batch_norm_weight,
                               void* batch_norm_bias, void* group_norm_weight, void* group_norm_bias,
                               int64_t batch_size, int64_t in_channels, int64_t height, int64_t width,
                               int64_t out_channels, int64_t kernel_size, int64_t stride, int64_t padding,
                               int64_t num_groups, float eps) {
    const Conv shape = conv_transpose2d_shape(batch_size, in_channels, out_channels, height, width, kernel_size,
                                              stride, padding);
    const int64_t points = shape.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_channels * points);
    const Pool windows = pool2d_shape(batch_size * out_channels, shape.output.h, shape.output.w, 2, 2);
    conv_transpose(y, in(x), in(conv_transpose_weight), shape, Plain());
    batch_norm(y, y, Channels{batch_size, out_channels, points}, Affine{in(batch_norm_weight), in(batch_norm_bias)},
               eps, Tanh());
    pool(out(output), y, windows, MaxPool());
    group_norm(out(output), out(output), Channels{batch_size, out_channels, windows.output.count()}, num_groups,
               Affine{in(group_norm_weight), in(group_norm_bias)}, eps);
}
