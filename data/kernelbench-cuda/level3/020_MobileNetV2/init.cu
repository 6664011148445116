// Block after block of convolutions, each normalised by the statistics that are given.
#include <kernelblaster/kernels/network.cuh>

// Blocks of a stage: hidden channels per channel, channels as multiples of the width, and the first one's stride.
struct Stage {
    int64_t expansion, multiple, blocks, stride;
};

static Image inverted_bottleneck(Network& net, Image x, int64_t channels, int64_t stride, int64_t expansion) {
    if (expansion != 1) x = normed_given(net, conv_layer(net, x, expansion * x.channels, 1), Relu6());
    x = normed_given(net, conv_layer(net, x, x.channels, 3, stride, 1, x.channels), Relu6());
    return normed_given(net, conv_layer(net, x, channels, 1));
}

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size, int64_t image,
                               int64_t width, int64_t num_classes) {
    const Stage stages[7] = {{1, 2, 1, 1}, {6, 3, 2, 2},  {6, 4, 3, 2}, {6, 8, 4, 2},
                             {6, 12, 3, 1}, {6, 20, 3, 2}, {6, 40, 1, 1}};
    Network net{weights};
    Image y = conv_layer(net, image_of(x, batch_size, 3, image, image), 4 * width, 3, 2, 1);
    y = normed_given(net, y, Relu6());
    for (const Stage& stage : stages) {
        for (int64_t block = 0; block < stage.blocks; ++block) {
            const int64_t stride = block == 0 ? stage.stride : 1;
            y = inverted_bottleneck(net, y, stage.multiple * width, stride, stage.expansion);
        }
    }
    y = normed_given(net, conv_layer(net, y, 160 * width, 1), Relu6());
    classify(net, out(output), global_average(net, y), batch_size, y.channels, num_classes);
}
