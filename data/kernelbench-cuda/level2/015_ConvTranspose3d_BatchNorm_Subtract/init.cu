// Transposed convolution into scratch memory, batch norm in place, one block per plane for its mean, which is then
// subtracted.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/pool.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct Centred {
    const scalar_t *y, *means;
    int64_t points;
    __device__ float operator()(int64_t index) const { return to_float(y[index]) - to_float(means[index / points]); }
};

void launch_gpu_implementation(void* output, void* x, void* conv_transpose_weight, void* batch_norm_weight,
                               int64_t batch_size, int64_t in_channels, int64_t depth, int64_t height,
                               int64_t width, int64_t out_channels, int64_t kernel_size, int64_t stride,
                               int64_t padding, float eps) {
    const Conv shape = conv_transpose3d_shape(batch_size, in_channels, out_channels, {depth, height, width},
                                              kernel_size, stride, padding);
    const int64_t points = shape.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_channels * points);
    const int64_t planes = batch_size * out_channels;
    scalar_t* means = workspace.take(planes);
    conv_transpose(y, in(x), in(conv_transpose_weight), shape, Plain());
    batch_norm(y, y, Channels{batch_size, out_channels, points}, Affine{in(batch_norm_weight)}, eps);
    average_planes(means, y, planes, points);
    generate(out(output), planes * points, Centred{y, means, points});
}
