// Scale and batch norm with given statistics in the transposed convolution's epilogue; one block per plane then
// averages.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/pool.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct ScaleNorm {
    const scalar_t *bias, *weight, *shift, *mean, *variance;
    float factor, eps;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        const float centred = (sum + to_float(bias[channel])) * factor - to_float(mean[channel]);
        const float normal = centred * rsqrtf(to_float(variance[channel]) + eps);
        return normal * to_float(weight[channel]) + to_float(shift[channel]);
    }
};

void launch_gpu_implementation(void* output, void* x, void* conv_transpose_weight, void* conv_transpose_bias,
                               void* batch_norm_weight, void* batch_norm_bias, void* batch_norm_running_mean,
                               void* batch_norm_running_var, int64_t batch_size, int64_t in_channels, int64_t depth,
                               int64_t height, int64_t width, int64_t out_channels, int64_t kernel_size, float eps,
                               float scale_factor) {
    const Conv shape = conv_transpose3d_shape(batch_size, in_channels, out_channels, {depth, height, width},
                                              kernel_size);
    const int64_t points = shape.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_channels * points);
    const ScaleNorm epilogue{in(conv_transpose_bias), in(batch_norm_weight), in(batch_norm_bias),
                             in(batch_norm_running_mean), in(batch_norm_running_var), scale_factor, eps};
    conv_transpose(y, in(x), in(conv_transpose_weight), shape, epilogue);
    average_planes(out(output), y, batch_size * out_channels, points);
}
