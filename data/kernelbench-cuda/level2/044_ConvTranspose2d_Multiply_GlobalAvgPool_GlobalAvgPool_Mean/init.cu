// Scaled transposed convolution into scratch memory, one thread per column averages its rows, one block per plane
// averages those means.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct BiasScale {
    const scalar_t* bias;
    float factor;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return (sum + to_float(bias[channel])) * factor;
    }
};

void launch_gpu_implementation(void* output, void* x, void* conv_transpose_weight, void* conv_transpose_bias,
                               int64_t batch_size, int64_t in_channels, int64_t height, int64_t width,
                               int64_t out_channels, int64_t kernel_size, int64_t stride, int64_t padding,
                               int64_t output_padding, float multiplier) {
    const Conv shape = conv_transpose2d_shape(batch_size, in_channels, out_channels, height, width, kernel_size,
                                              stride, padding, output_padding);
    const int64_t rows = shape.output.h, columns = shape.output.w, planes = batch_size * out_channels;
    Workspace workspace;
    scalar_t* y = workspace.take(planes * rows * columns);
    scalar_t* means = workspace.take(planes * columns);
    conv_transpose(y, in(x), in(conv_transpose_weight), shape, BiasScale{in(conv_transpose_bias), multiplier});
    reduce_axis(means, y, AxisView{planes, rows, columns}, Sum(), Scaled{1.0f / rows});
    reduce_rows(out(output), means, planes, columns, Sum(), Scaled{1.0f / columns});
}
