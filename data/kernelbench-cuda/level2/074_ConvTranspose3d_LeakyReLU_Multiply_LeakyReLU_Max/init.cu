// Activations and factor in the transposed convolution's epilogue, then maxima of 2 x 2 x 2 windows.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/pool.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct LeakyTimesLeaky {
    const scalar_t *bias, *factor;
    float slope;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        const float y = leaky_relu(sum + to_float(bias[channel]), slope) * to_float(factor[channel]);
        return leaky_relu(y, slope);
    }
};

void launch_gpu_implementation(void* output, void* x, void* multiplier, void* conv_transpose_weight,
                               void* conv_transpose_bias, int64_t batch_size, int64_t in_channels, int64_t depth,
                               int64_t height, int64_t width, int64_t out_channels, int64_t kernel_size,
                               int64_t stride, int64_t padding, int64_t output_padding, float negative_slope) {
    const Conv shape = conv_transpose3d_shape(batch_size, in_channels, out_channels, {depth, height, width},
                                              kernel_size, stride, padding, output_padding);
    const int64_t points = shape.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_channels * points);
    conv_transpose(y, in(x), in(conv_transpose_weight), shape,
                   LeakyTimesLeaky{in(conv_transpose_bias), in(multiplier), negative_slope});
    pool(out(output), y, pool3d_shape(batch_size * out_channels, shape.output, 2, 2), MaxPool());
}
