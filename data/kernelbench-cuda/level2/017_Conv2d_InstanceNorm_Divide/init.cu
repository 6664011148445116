// Convolution into scratch memory, then one block per plane normalises and divides.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct Divide {
    float divisor;
    __device__ float operator()(float value, int64_t, int64_t) const { return value / divisor; }
};

void launch_gpu_implementation(void* output, void* x, void* conv_weight, int64_t batch_size, int64_t in_channels,
                               int64_t height, int64_t width, int64_t out_channels, int64_t kernel_size, float eps,
                               float divisor) {
    const Conv shape = conv2d_shape(batch_size, in_channels, out_channels, height, width, kernel_size);
    const int64_t points = shape.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_channels * points);
    conv(y, in(x), in(conv_weight), shape, Plain());
    group_norm(out(output), y, Channels{batch_size, out_channels, points}, out_channels, Affine{}, eps,
               Divide{divisor});
}
