// Transposed convolution into scratch memory, then one thread per position: log-sum-exp over the channels, activation,
// bias, clamp.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/softmax.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct SwishSubtractClamp {
    const scalar_t* bias;
    __device__ float operator()(float v) const {
        return clamp(v * sigmoid(v + 3.0f) / 6.0f - to_float(*bias), -1.0f, 1.0f);
    }
};

void launch_gpu_implementation(void* output, void* x, void* bias, void* conv_transpose_weight,
                               void* conv_transpose_bias, int64_t batch_size, int64_t in_channels, int64_t depth,
                               int64_t height, int64_t width, int64_t out_channels, int64_t kernel_size,
                               int64_t stride, int64_t padding) {
    const Conv shape = conv_transpose3d_shape(batch_size, in_channels, out_channels, {depth, height, width},
                                              kernel_size, stride, padding);
    const int64_t points = shape.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_channels * points);
    conv_transpose(y, in(x), in(conv_transpose_weight), shape, Bias{in(conv_transpose_bias)});
    logsumexp_channels(out(output), y, AxisView{batch_size, out_channels, points}, SwishSubtractClamp{in(bias)});
}
