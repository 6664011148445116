// Three convolutions; the last two are copied to their channels of the output.
#include <kernelblaster/kernels/network.cuh>

void launch_gpu_implementation(void* output, void* x, void* squeeze_weight, void* squeeze_bias,
                               void* expand1x1_weight, void* expand1x1_bias, void* expand3x3_weight,
                               void* expand3x3_bias, int64_t batch_size, int64_t in_channels,
                               int64_t squeeze_channels, int64_t expand1x1_channels, int64_t expand3x3_channels,
                               int64_t height, int64_t width) {
    Network net{nullptr};
    const Image image = image_of(x, batch_size, in_channels, height, width);
    const Image y = image_of(output, batch_size, expand1x1_channels + expand3x3_channels, height, width);
    const Image squeezed =
        convolved(net, image, in(squeeze_weight), squeeze_channels, 1, 1, 0, 1, BiasRelu{in(squeeze_bias)});
    const Image one =
        convolved(net, squeezed, in(expand1x1_weight), expand1x1_channels, 1, 1, 0, 1, BiasRelu{in(expand1x1_bias)});
    const Image three =
        convolved(net, squeezed, in(expand3x3_weight), expand3x3_channels, 3, 1, 1, 1, BiasRelu{in(expand3x3_bias)});
    place_channels(y, place_channels(y, 0, one), three);
}
