// Convolutions and normalisations one after the other; the last one of a block adds what the block was given.
#include <kernelblaster/kernels/network.cuh>

// The weights of a convolution beside the block come behind those of the block.
static Image bottleneck(Network& net, Image x, int64_t channels, int64_t stride) {
    Image y = norm_layer(net, conv_layer(net, x, channels, 1), Relu());
    y = norm_layer(net, conv_layer(net, y, channels, 3, stride, 1), Relu());
    y = conv_layer(net, y, 4 * channels, 1);
    if (stride == 1 && x.channels == y.channels) return norm_layer(net, y, AddRelu{x.data});

    const Affine affine{in(net.weights[0]), in(net.weights[1])};
    net.weights += 2;
    const Image beside = norm_layer(net, conv_layer(net, x, y.channels, 1, stride));
    batch_norm(y.data, y.data, Channels{y.batch, y.channels, y.points()}, affine, 1e-5f, AddRelu{beside.data});
    return y;
}

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size, int64_t image,
                               int64_t width, int64_t layers1, int64_t layers2, int64_t layers3, int64_t layers4,
                               int64_t num_classes) {
    const int64_t layers[4] = {layers1, layers2, layers3, layers4};
    Network net{weights};
    Image y = conv_layer(net, image_of(x, batch_size, 3, image, image), width, 7, 2, 3);
    y = pool_layer(net, norm_layer(net, y, Relu()), 3, 2, 1, MaxPool());
    for (int stage = 0; stage < 4; ++stage) {
        for (int64_t layer = 0; layer < layers[stage]; ++layer) {
            y = bottleneck(net, y, width << stage, stage > 0 && layer == 0 ? 2 : 1);
        }
    }
    classify(net, out(output), global_average(net, y), batch_size, y.channels, num_classes);
}
