// Block after block of convolutions, each normalised by the statistics that are given; gates by products of the means.
#include <kernelblaster/kernels/network.cuh>

// Channels as multiples of the width, stride, hidden channels per channel.
struct Block {
    int64_t multiple, stride, expansion;
};

struct Rectified {
    __device__ float operator()(float sum, int64_t, int64_t) const { return relu(sum); }
};

struct Gated {
    const scalar_t *x, *gates;
    int64_t points;
    __device__ float operator()(int64_t i) const { return to_float(x[i]) * sigmoid(to_float(gates[i / points])); }
};

// Each channel times a sigmoid of what two matrices make of all channels' means.
static Image gate(Network& net, Image x) {
    const int64_t few = x.channels / 4;
    const scalar_t* means = global_average(net, x);
    scalar_t *reduced = net.take(x.batch * few), *gates = net.take(x.batch * x.channels);
    linear(reduced, means, net.weight(), x.batch, x.channels, few, Rectified());
    linear(gates, reduced, net.weight(), x.batch, few, x.channels, Plain());
    const Image y = net.image(x.batch, x.channels, x.height, x.width);
    generate(y.data, y.count(), Gated{x.data, gates, x.points()});
    return y;
}

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size, int64_t image,
                               int64_t width, int64_t num_classes) {
    const Block blocks[5] = {{6, 1, 3}, {9, 2, 6}, {12, 2, 6}, {18, 2, 6}, {24, 1, 6}};
    Network net{weights};
    Image y = conv_layer(net, image_of(x, batch_size, 3, image, image), 2 * width, 3, 2, 1);
    y = normed_given(net, y, Relu());
    for (const Block& b : blocks) {
        y = normed_given(net, conv_layer(net, y, b.expansion * y.channels, 1), Relu());
        y = normed_given(net, conv_layer(net, y, y.channels, 3, b.stride, 1, y.channels), Relu());
        y = gate(net, y);
        y = normed_given(net, conv_layer(net, y, b.multiple * width, 1));
    }
    y = normed_given(net, conv_layer(net, y, 88 * width, 1), Relu());
    classify(net, out(output), global_average(net, y), batch_size, y.channels, num_classes);
}
