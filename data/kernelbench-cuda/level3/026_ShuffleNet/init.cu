// Units one after the other; the weights of a convolution beside a unit come behind those of the unit.
#include <kernelblaster/kernels/network.cuh>

static Image shuffle_unit(Network& net, Image x, int64_t channels, int64_t groups) {
    const int64_t middle = channels / 4;
    const Image y1 = normed_given(net, conv_layer(net, x, middle, 1, 1, 0, groups), Relu());
    const Image y2 = normed_given(net, conv_layer(net, y1, middle, 3, 1, 1, middle));
    const Image y3 = conv_layer(net, exchange_channels(net, y2, groups), channels, 1, 1, 0, groups);
    if (x.channels == channels) return normed_given(net, y3, ReluAdd{x.data});

    const Image y4 = normed_given(net, y3, Relu());
    return normed_given(net, conv_layer(net, x, channels, 1), Add{y4.data});
}

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size, int64_t image,
                               int64_t groups, int64_t width, int64_t width2, int64_t width3, int64_t width4,
                               int64_t last_width, int64_t repeats2, int64_t repeats3, int64_t repeats4,
                               int64_t num_classes) {
    const int64_t widths[3] = {width2, width3, width4}, repeats[3] = {repeats2, repeats3, repeats4};
    Network net{weights};
    Image y = conv_layer(net, image_of(x, batch_size, 3, image, image), width, 3, 2, 1);
    y = pool_layer(net, normed_given(net, y, Relu()), 3, 2, 1, MaxPool());
    for (int stage = 0; stage < 3; ++stage) {
        for (int64_t unit = 0; unit < repeats[stage]; ++unit) y = shuffle_unit(net, y, widths[stage], groups);
    }
    y = normed_given(net, conv_layer(net, y, last_width, 1), Relu());
    classify(net, out(output), global_average(net, y), batch_size, last_width, num_classes);
}
