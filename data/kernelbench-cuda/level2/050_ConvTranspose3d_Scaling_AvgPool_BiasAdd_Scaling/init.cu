// Scaled transposed convolution, kept in fp32; then one thread per window: its mean, the bias and the second scale.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/elementwise.cuh>
#include <kernelblaster/kernels/pool.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct ScaleKeep {
    const scalar_t *bias, *scale;
    float* kept;
    __device__ float operator()(float sum, int64_t index, int64_t channel) const {
        kept[index] = (sum + to_float(bias[channel])) * to_float(*scale);
        return kept[index];
    }
};

struct MeanAddScale {
    const float* y;
    Pool windows;
    const scalar_t *bias, *scale;
    int64_t channels;
    __device__ float operator()(int64_t index) const {
        const int64_t points = windows.output.count(), plane = index / points;
        const float mean = window_mean(y + plane * windows.input.count(), windows, index % points);
        return (mean + to_float(bias[plane % channels])) * to_float(*scale);
    }
};

void launch_gpu_implementation(void* output, void* x, void* scale1, void* bias, void* scale2,
                               void* conv_transpose_weight, void* conv_transpose_bias, int64_t batch_size,
                               int64_t in_channels, int64_t depth, int64_t height, int64_t width,
                               int64_t out_channels, int64_t kernel_size, int64_t stride, int64_t padding) {
    const Conv shape = conv_transpose3d_shape(batch_size, in_channels, out_channels, {depth, height, width},
                                              kernel_size, stride, padding);
    const Pool windows = pool3d_shape(batch_size * out_channels, shape.output, 2, 2);
    const int64_t count = windows.planes * shape.output.count();
    Workspace workspace;
    float* kept = workspace.take_float(count);
    conv_transpose(workspace.take(count), in(x), in(conv_transpose_weight), shape,
                   ScaleKeep{in(conv_transpose_bias), in(scale1), kept});
    generate(out(output), windows.planes * windows.output.count(),
             MeanAddScale{kept, windows, in(bias), in(scale2), out_channels});
}
