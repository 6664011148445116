// mish(conv(x)) into scratch memory, then one block per channel normalises over samples and pixels.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct BiasMish {
    const scalar_t* bias;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return mish(sum + to_float(bias[channel]));
    }
};

void launch_gpu_implementation(void* output, void* x, void* conv_weight, void* conv_bias, void* bn_weight,
                               void* bn_bias, int64_t batch_size, int64_t in_channels, int64_t height,
                               int64_t width, int64_t out_channels, int64_t kernel_size, float eps) {
    const Conv shape = conv2d_shape(batch_size, in_channels, out_channels, height, width, kernel_size);
    const int64_t points = shape.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_channels * points);
    conv(y, in(x), in(conv_weight), shape, BiasMish{in(conv_bias)});
    batch_norm(out(output), y, Channels{batch_size, out_channels, points}, Affine{in(bn_weight), in(bn_bias)}, eps);
}
