// Block after block of convolutions, each normalised by the statistics that are given.
#include <kernelblaster/kernels/network.cuh>

// Channels as multiples of the width, kernel, stride, hidden channels per channel.
struct Block {
    int64_t multiple, kernel, stride, expansion;
};

static Image mbconv(Network& net, Image x, int64_t channels, Block b) {
    Image y = x;
    if (b.expansion != 1) y = normed_given(net, conv_layer(net, y, b.expansion * x.channels, 1), Relu6());
    y = normed_given(net, conv_layer(net, y, y.channels, b.kernel, b.stride, b.kernel / 2, y.channels), Relu6());
    y = conv_layer(net, y, channels, 1);
    return b.stride == 1 && x.channels == channels ? normed_given(net, y, Add{x.data}) : normed_given(net, y);
}

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size, int64_t image,
                               int64_t width, int64_t num_classes) {
    const Block blocks[13] = {
        {2, 3, 1, 1}, {3, 3, 2, 6}, {3, 3, 1, 6}, {5, 5, 2, 6}, {5, 5, 1, 6},
        {10, 3, 2, 6}, {10, 3, 1, 6}, {14, 5, 1, 6}, {14, 5, 1, 6}, {24, 5, 2, 6},
        {24, 5, 1, 6}, {24, 5, 1, 6}, {40, 3, 1, 6},
    };
    Network net{weights};
    Image y = conv_layer(net, image_of(x, batch_size, 3, image, image), 4 * width, 3, 2, 1);
    y = normed_given(net, y, Relu());
    for (const Block& block : blocks) y = mbconv(net, y, block.multiple * width, block);
    y = normed_given(net, conv_layer(net, y, 160 * width, 1), Relu());
    classify(net, out(output), global_average(net, y), batch_size, y.channels, num_classes);
}
