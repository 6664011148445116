// Two direct convolutions one after the other: depthwise, then pointwise.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/workspace.cuh>

void launch_gpu_implementation(void* output, void* x, void* depthwise_weight, void* pointwise_weight,
                               int64_t batch_size, int64_t in_channels, int64_t out_channels, int64_t height,
                               int64_t width, int64_t kernel_size, int64_t padding) {
    const Conv filters =
        conv2d_shape(batch_size, in_channels, in_channels, height, width, kernel_size, 1, padding, in_channels);
    Workspace workspace;
    scalar_t* filtered = workspace.take(batch_size * in_channels * filters.output.count());
    conv(filtered, in(x), in(depthwise_weight), filters, Plain());
    conv(out(output), filtered, in(pointwise_weight),
         conv2d_shape(batch_size, in_channels, out_channels, filters.output.h, filters.output.w, 1), Plain());
}
