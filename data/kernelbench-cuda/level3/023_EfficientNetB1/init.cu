// Block after block of convolutions, each normalised by the statistics that are given.
#include <kernelblaster/kernels/network.cuh>

// Channels as multiples of the width, stride, hidden channels per channel.
struct Block {
    int64_t multiple, stride, expansion;
};

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size, int64_t image,
                               int64_t width, int64_t num_classes) {
    const Block blocks[7] = {{2, 1, 1}, {3, 2, 6}, {5, 2, 6}, {10, 2, 6}, {14, 1, 6}, {24, 2, 6}, {40, 1, 6}};
    Network net{weights};
    Image y = conv_layer(net, image_of(x, batch_size, 3, image, image), 4 * width, 3, 2, 1);
    y = normed_given(net, y, Relu());
    for (const Block& b : blocks) {
        y = normed_given(net, conv_layer(net, y, b.expansion * y.channels, 1), Relu6());
        y = normed_given(net, conv_layer(net, y, y.channels, 3, b.stride, 1, y.channels), Relu6());
        y = normed_given(net, conv_layer(net, y, b.multiple * width, 1));
    }
    y = normed_given(net, conv_layer(net, y, 160 * width, 1), Relu());
    classify(net, out(output), global_average(net, y), batch_size, y.channels, num_classes);
}
