// Transposed convolution into scratch memory; one thread per pixel finds the minimum over the channels, one per column
// sums them, then GELU and the bias.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct GeluBias {
    const scalar_t* bias;
    __device__ float operator()(float v) const { return gelu(v) + to_float(*bias); }
};

void launch_gpu_implementation(void* output, void* x, void* bias, void* conv_transpose_weight,
                               void* conv_transpose_bias, int64_t batch_size, int64_t in_channels, int64_t height,
                               int64_t width, int64_t out_channels, int64_t kernel_size, int64_t stride,
                               int64_t padding, int64_t output_padding) {
    const Conv shape = conv_transpose2d_shape(batch_size, in_channels, out_channels, height, width, kernel_size,
                                              stride, padding, output_padding);
    const int64_t points = shape.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_channels * points);
    scalar_t* minima = workspace.take(batch_size * points);
    conv_transpose(y, in(x), in(conv_transpose_weight), shape, Bias{in(conv_transpose_bias)});
    reduce_axis(minima, y, AxisView{batch_size, out_channels, points}, Min(), Scaled{1.0f});
    reduce_axis(out(output), minima, AxisView{batch_size, shape.output.h, shape.output.w}, Sum(), GeluBias{in(bias)});
}
