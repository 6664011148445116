// Transposed convolution into scratch memory, mean over the depth and bias per pixel, then one thread per pixel for
// softmax, tanh and scale.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/softmax.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct AddBias {
    const scalar_t *means, *bias;
    int64_t pixels, channels;
    __device__ float operator()(int64_t index) const {
        return to_float(means[index]) + to_float(bias[index / pixels % channels]);
    }
};

struct TanhScale {
    float factor;
    __device__ float operator()(float value, int64_t, int64_t) const { return tanhf(value) * factor; }
};

void launch_gpu_implementation(void* output, void* x, void* bias, void* conv_transpose_weight,
                               void* conv_transpose_bias, int64_t batch_size, int64_t in_channels, int64_t depth,
                               int64_t height, int64_t width, int64_t out_channels, int64_t kernel_size,
                               int64_t stride, int64_t padding, float scaling_factor) {
    const Conv shape = conv_transpose3d_shape(batch_size, in_channels, out_channels, {depth, height, width},
                                              kernel_size, stride, padding);
    const int64_t points = shape.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_channels * points);
    const int64_t planes = batch_size * out_channels, pixels = shape.output.h * shape.output.w;
    scalar_t* means = workspace.take(planes * pixels);
    conv_transpose(y, in(x), in(conv_transpose_weight), shape, Bias{in(conv_transpose_bias)});
    reduce_axis(means, y, AxisView{planes, shape.output.d, pixels}, Sum(), Scaled{1.0f / shape.output.d});
    generate(means, planes * pixels, AddBias{means, in(bias), pixels, out_channels});
    softmax_channels(out(output), means, AxisView{batch_size, out_channels, pixels}, TanhScale{scaling_factor});
}
