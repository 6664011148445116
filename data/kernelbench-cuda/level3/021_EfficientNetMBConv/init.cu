// Three convolutions, each normalised in place; the last normalisation writes the output.
#include <kernelblaster/kernels/network.cuh>

void launch_gpu_implementation(void* output, void* x, void* expand_conv_0_weight, void* expand_conv_1_weight,
                               void* expand_conv_1_bias, void* depthwise_conv_0_weight, void* depthwise_conv_1_weight,
                               void* depthwise_conv_1_bias, void* project_conv_0_weight, void* project_conv_1_weight,
                               void* project_conv_1_bias, int64_t batch_size, int64_t in_channels,
                               int64_t out_channels, int64_t height, int64_t width, int64_t kernel_size,
                               int64_t stride, int64_t expand_ratio) {
    Network net{nullptr};
    const int64_t hidden = in_channels * expand_ratio;
    const Image image = image_of(x, batch_size, in_channels, height, width);
    const Image wide = convolved(net, image, in(expand_conv_0_weight), hidden, 1, 1, 0, 1, Plain());
    batch_norm(wide.data, wide.data, Channels{batch_size, hidden, wide.points()},
               Affine{in(expand_conv_1_weight), in(expand_conv_1_bias)}, 1e-5f, Relu6());
    const Image filtered = convolved(net, wide, in(depthwise_conv_0_weight), hidden, kernel_size, stride,
                                     (kernel_size - 1) / 2, hidden, Plain());
    batch_norm(filtered.data, filtered.data, Channels{batch_size, hidden, filtered.points()},
               Affine{in(depthwise_conv_1_weight), in(depthwise_conv_1_bias)}, 1e-5f, Relu6());
    const Image narrow = convolved(net, filtered, in(project_conv_0_weight), out_channels, 1, 1, 0, 1, Plain());
    const Channels shape{batch_size, out_channels, narrow.points()};
    const Affine affine{in(project_conv_1_weight), in(project_conv_1_bias)};
    if (stride == 1 && in_channels == out_channels) {
        batch_norm(out(output), narrow.data, shape, affine, 1e-5f, Add{image.data});
    } else {
        batch_norm(out(output), narrow.data, shape, affine, 1e-5f);
    }
}
