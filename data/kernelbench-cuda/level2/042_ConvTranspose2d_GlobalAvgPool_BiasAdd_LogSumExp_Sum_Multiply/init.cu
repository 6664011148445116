// Transposed convolution into scratch memory, mean of each column plus bias, one thread per column for the log-sum-
// exp, one block per sample for the sum.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/softmax.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct AddBias {
    const scalar_t *means, *bias;
    int64_t width, channels;
    __device__ float operator()(int64_t index) const {
        return to_float(means[index]) + to_float(bias[index / width % channels]);
    }
};

void launch_gpu_implementation(void* output, void* x, void* bias, void* conv_transpose_weight,
                               void* conv_transpose_bias, int64_t batch_size, int64_t in_channels, int64_t height,
                               int64_t width, int64_t out_channels, int64_t kernel_size, float factor) {
    const Conv shape = conv_transpose2d_shape(batch_size, in_channels, out_channels, height, width, kernel_size);
    const int64_t rows = shape.output.h, columns = shape.output.w, planes = batch_size * out_channels;
    Workspace workspace;
    scalar_t* y = workspace.take(planes * rows * columns);
    scalar_t* means = workspace.take(planes * columns);
    scalar_t* exponents = workspace.take(batch_size * columns);
    conv_transpose(y, in(x), in(conv_transpose_weight), shape, Bias{in(conv_transpose_bias)});
    reduce_axis(means, y, AxisView{planes, rows, columns}, Sum(), Scaled{1.0f / rows});
    generate(means, planes * columns, AddBias{means, in(bias), columns, out_channels});
    logsumexp_channels(exponents, means, AxisView{batch_size, out_channels, columns}, Scaled{1.0f});
    reduce_rows(out(output), exponents, batch_size, columns, Sum(), Scaled{factor});
}
