// Convolutions and normalisations one after the other; the last one of a block adds what the block was given.
#include <kernelblaster/kernels/network.cuh>

// The weights of a convolution beside the block come behind those of the block.
static Image basic_block(Network& net, Image x, int64_t channels, int64_t stride) {
    const Image inner = norm_layer(net, conv_layer(net, x, channels, 3, stride, 1), Relu());
    const Image y = conv_layer(net, inner, channels, 3, 1, 1);
    if (stride == 1 && x.channels == channels) return norm_layer(net, y, AddRelu{x.data});

    const Affine affine{in(net.weights[0]), in(net.weights[1])};
    net.weights += 2;
    const Image beside = norm_layer(net, conv_layer(net, x, channels, 1, stride));
    batch_norm(y.data, y.data, Channels{y.batch, channels, y.points()}, affine, 1e-5f, AddRelu{beside.data});
    return y;
}

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size, int64_t image,
                               int64_t width, int64_t num_classes) {
    Network net{weights};
    Image y = conv_layer(net, image_of(x, batch_size, 3, image, image), width, 7, 2, 3);
    y = pool_layer(net, norm_layer(net, y, Relu()), 3, 2, 1, MaxPool());
    for (int stage = 0; stage < 4; ++stage) {
        y = basic_block(net, y, width << stage, stage == 0 ? 1 : 2);
        y = basic_block(net, y, width << stage, 1);
    }
    classify(net, out(output), global_average(net, y), batch_size, y.channels, num_classes);
}
