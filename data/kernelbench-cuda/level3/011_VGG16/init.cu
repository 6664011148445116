// Stage after stage of convolutions, which add their bias and rectify, each with a pooling; then linear layers.
#include <kernelblaster/kernels/network.cuh>

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size, int64_t image,
                               int64_t width, int64_t hidden, int64_t num_classes) {
    const int depths[5] = {2, 2, 3, 3, 3};
    Network net{weights};
    Image y = image_of(x, batch_size, 3, image, image);
    for (int stage = 0; stage < 5; ++stage) {
        const int64_t channels = width * (stage < 3 ? 1 << stage : 8);
        for (int layer = 0; layer < depths[stage]; ++layer) y = conv_bias<BiasRelu>(net, y, channels, 3, 1, 1);
        y = pool_layer(net, y, 2, 2, 0, MaxPool());
    }

    const scalar_t* hidden1 = linear_layer<BiasRelu>(net, y.data, batch_size, y.channels * y.points(), hidden);
    const scalar_t* hidden2 = linear_layer<BiasRelu>(net, hidden1, batch_size, hidden, hidden);
    classify(net, out(output), hidden2, batch_size, hidden, num_classes);
}
