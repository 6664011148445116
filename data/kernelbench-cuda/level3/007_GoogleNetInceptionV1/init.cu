// Layer after layer; the branches of a module are copied to their channels of its output.
#include <kernelblaster/kernels/network.cuh>

// Channels of a module: 1x1; 1x1 before 3x3, 3x3; 1x1 before 5x5, 5x5; 1x1 after pooling.
struct Branches {
    int64_t one, reduce3, three, reduce5, five, pooled;
};

static Image inception(Network& net, Image x, Branches b, int64_t width) {
    const int64_t channels = (b.one + b.three + b.five + b.pooled) * width;
    const Image y = net.image(x.batch, channels, x.height, x.width);
    int64_t channel = place_channels(y, 0, conv_bias<Bias>(net, x, b.one * width, 1));
    const Image reduced3 = conv_bias<Bias>(net, x, b.reduce3 * width, 1);
    channel = place_channels(y, channel, conv_bias<Bias>(net, reduced3, b.three * width, 3, 1, 1));
    const Image reduced5 = conv_bias<Bias>(net, x, b.reduce5 * width, 1);
    channel = place_channels(y, channel, conv_bias<Bias>(net, reduced5, b.five * width, 5, 1, 2));
    const Image pooled = pool_layer(net, x, 3, 1, 1, MaxPool());
    place_channels(y, channel, conv_bias<Bias>(net, pooled, b.pooled * width, 1));
    return y;
}

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size, int64_t image,
                               int64_t width, int64_t num_classes) {
    const Branches modules[9] = {
        {8, 12, 16, 2, 4, 4},  // 3a
        {16, 16, 24, 4, 12, 8},  // 3b
        {24, 12, 26, 2, 6, 8},  // 4a
        {20, 14, 28, 3, 8, 8},  // 4b
        {16, 16, 32, 3, 8, 8},  // 4c
        {14, 18, 36, 4, 8, 8},  // 4d
        {32, 20, 40, 4, 16, 16},  // 4e
        {32, 20, 40, 4, 16, 16},  // 5a
        {48, 24, 48, 6, 16, 16},  // 5b
    };
    Network net{weights};
    Image y = conv_bias<BiasRelu>(net, image_of(x, batch_size, 3, image, image), 8 * width, 7, 2, 3);
    y = pool_layer(net, y, 3, 2, 1, MaxPool());
    y = conv_bias<BiasRelu>(net, y, 8 * width, 1);
    y = conv_bias<BiasRelu>(net, y, 24 * width, 3, 1, 1);
    y = pool_layer(net, y, 3, 2, 1, MaxPool());
    for (int module = 0; module < 9; ++module) {
        y = inception(net, y, modules[module], width);
        if (module == 1 || module == 6) y = pool_layer(net, y, 3, 2, 1, MaxPool());
    }
    classify(net, out(output), global_average(net, y), batch_size, y.channels, num_classes);
}
