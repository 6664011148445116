// Layer after layer; convolutions add their bias and rectify, and so do linear layers but the last.
#include <kernelblaster/kernels/network.cuh>

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size, int64_t image,
                               int64_t width, int64_t hidden, int64_t num_classes) {
    Network net{weights};
    Image y = conv_bias<BiasRelu>(net, image_of(x, batch_size, 3, image, image), 6 * width, 11, 4, 2);
    y = pool_layer(net, y, 3, 2, 0, MaxPool());
    y = conv_bias<BiasRelu>(net, y, 16 * width, 5, 1, 2);
    y = pool_layer(net, y, 3, 2, 0, MaxPool());
    y = conv_bias<BiasRelu>(net, y, 24 * width, 3, 1, 1);
    y = conv_bias<BiasRelu>(net, y, 24 * width, 3, 1, 1);
    y = conv_bias<BiasRelu>(net, y, 16 * width, 3, 1, 1);
    y = pool_layer(net, y, 3, 2, 0, MaxPool());

    const scalar_t* hidden1 = linear_layer<BiasRelu>(net, y.data, batch_size, y.channels * y.points(), hidden);
    const scalar_t* hidden2 = linear_layer<BiasRelu>(net, hidden1, batch_size, hidden, hidden);
    classify(net, out(output), hidden2, batch_size, hidden, num_classes);
}
