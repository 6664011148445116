// Blocks gather channels in one image; the weights of transitions come behind those of all blocks.
#include <kernelblaster/kernels/network.cuh>

// Places the channels of each layer behind those that it saw.
static Image dense_block(Network& net, Image x, int64_t layers, int64_t growth_rate) {
    for (int64_t layer = 0; layer < layers; ++layer) {
        const Image added = conv_layer(net, normed_given(net, x, Relu()), growth_rate, 3, 1, 1);
        const Image both = net.image(x.batch, x.channels + growth_rate, x.height, x.width);
        place_channels(both, place_channels(both, 0, x), added);
        x = both;
    }
    return x;
}

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size, int64_t image,
                               int64_t width, int64_t growth_rate, int64_t layers1, int64_t layers2, int64_t layers3,
                               int64_t layers4, int64_t num_classes) {
    const int64_t layers[4] = {layers1, layers2, layers3, layers4};
    Network net{weights};
    Image y = conv_layer(net, image_of(x, batch_size, 3, image, image), width, 7, 2, 3);
    y = pool_layer(net, normed_given(net, y, Relu()), 3, 2, 1, MaxPool());
    void* const* block_weights = net.weights;
    void* const* transition_weights = net.weights + 5 * (layers1 + layers2 + layers3 + layers4);
    for (int block = 0; block < 4; ++block) {
        net.weights = block_weights;
        y = dense_block(net, y, layers[block], growth_rate);
        block_weights = net.weights;
        net.weights = transition_weights;
        if (block == 3) break;
        y = conv_layer(net, normed_given(net, y, Relu()), y.channels / 2, 1);
        y = pool_layer(net, y, 2, 2, 0, AveragePool());
        transition_weights = net.weights;
    }
    const scalar_t* features = global_average(net, normed_given(net, y, Relu()));
    classify(net, out(output), features, batch_size, y.channels, num_classes);
}
