// Layer after layer; both expansions of a fire module are copied to their channels of its output.
#include <kernelblaster/kernels/network.cuh>

static Image fire(Network& net, Image x, int64_t squeezed_channels, int64_t expanded_channels) {
    const Image squeezed = conv_bias<BiasRelu>(net, x, squeezed_channels, 1);
    const Image y = net.image(x.batch, 2 * expanded_channels, x.height, x.width);
    const int64_t channel = place_channels(y, 0, conv_bias<BiasRelu>(net, squeezed, expanded_channels, 1));
    place_channels(y, channel, conv_bias<BiasRelu>(net, squeezed, expanded_channels, 3, 1, 1));
    return y;
}

// Windows of 3 x 3 two apart; the last ones may end outside.
static Image pool_rounded_up(Network& net, Image x) {
    Pool shape = pool2d_shape(x.batch * x.channels, x.height, x.width, 3, 2);
    shape.output = {1, x.height / 2, x.width / 2};
    const Image y = net.image(x.batch, x.channels, shape.output.h, shape.output.w);
    pool(y.data, x.data, shape, MaxPool());
    return y;
}

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size, int64_t image,
                               int64_t width, int64_t num_classes) {
    const int64_t w = width;
    Network net{weights};
    Image y = conv_bias<BiasRelu>(net, image_of(x, batch_size, 3, image, image), 6 * w, 7, 2);
    y = fire(net, pool_rounded_up(net, y), w, 4 * w);
    y = fire(net, y, w, 4 * w);
    y = fire(net, y, 2 * w, 8 * w);
    y = fire(net, pool_rounded_up(net, y), 2 * w, 8 * w);
    y = fire(net, y, 3 * w, 12 * w);
    y = fire(net, y, 3 * w, 12 * w);
    y = fire(net, y, 4 * w, 16 * w);
    y = fire(net, pool_rounded_up(net, y), 4 * w, 16 * w);
    y = conv_bias<BiasRelu>(net, y, num_classes, 1);
    average_planes(out(output), y.data, batch_size * num_classes, y.points());
}
