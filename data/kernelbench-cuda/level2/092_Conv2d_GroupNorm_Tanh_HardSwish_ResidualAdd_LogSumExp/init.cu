// Convolution into scratch memory; group norm, activations and the sum with the convolution into more of it; one
// thread per pixel then goes over the channels.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/softmax.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct TanhHardswishAdd {
    const scalar_t* y;
    __device__ float operator()(float value, int64_t index, int64_t) const {
        return to_float(y[index]) + hardswish(tanhf(value));
    }
};

void launch_gpu_implementation(void* output, void* x, void* conv_weight, void* conv_bias, void* group_norm_weight,
                               void* group_norm_bias, int64_t batch_size, int64_t in_channels, int64_t height,
                               int64_t width, int64_t out_channels, int64_t kernel_size, int64_t num_groups,
                               float eps) {
    const Conv shape = conv2d_shape(batch_size, in_channels, out_channels, height, width, kernel_size);
    const int64_t points = shape.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_channels * points);
    scalar_t* z = workspace.take(batch_size * out_channels * points);
    conv(y, in(x), in(conv_weight), shape, Bias{in(conv_bias)});
    group_norm(z, y, Channels{batch_size, out_channels, points}, num_groups,
               Affine{in(group_norm_weight), in(group_norm_bias)}, eps, TanhHardswishAdd{y});
    logsumexp_channels(out(output), z, AxisView{batch_size, out_channels, points}, Scaled{1.0f});
}
