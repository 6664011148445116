// Transposed convolution into scratch memory, then one block per line normalises, applies GELU and scales.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct GeluScale {
    float factor;
    __device__ float operator()(float value, int64_t, int64_t) const { return gelu(value) * factor; }
};

void launch_gpu_implementation(void* output, void* x, void* conv_transpose_weight, void* layer_norm_weight,
                               void* layer_norm_bias, int64_t batch_size, int64_t in_channels, int64_t depth,
                               int64_t height, int64_t width, int64_t out_channels, int64_t kernel_size,
                               int64_t stride, int64_t padding, float eps, float scaling_factor) {
    const Conv shape = conv_transpose3d_shape(batch_size, in_channels, out_channels, {depth, height, width},
                                              kernel_size, stride, padding);
    const int64_t points = shape.output.count();
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_channels * points);
    const int64_t columns = shape.output.w;
    conv_transpose(y, in(x), in(conv_transpose_weight), shape, Plain());
    layer_norm(out(output), y, batch_size * out_channels * points / columns, columns,
               Affine{in(layer_norm_weight), in(layer_norm_bias)}, eps, GeluScale{scaling_factor});
}
