// A pair is a filter for each channel and a mixture of channels, both normalised and rectified.
#include <kernelblaster/kernels/network.cuh>

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size, int64_t image,
                               int64_t width, int64_t num_classes) {
    const int multiples[13] = {2, 4, 4, 8, 8, 16, 16, 16, 16, 16, 16, 32, 32};
    const int strides[13] = {1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1};
    Network net{weights};
    Image y = conv_layer(net, image_of(x, batch_size, 3, image, image), width, 3, 2, 1);
    y = normed_given(net, y, Relu());
    for (int pair = 0; pair < 13; ++pair) {
        y = normed_given(net, conv_layer(net, y, y.channels, 3, strides[pair], 1, y.channels), Relu());
        y = normed_given(net, conv_layer(net, y, multiples[pair] * width, 1), Relu());
    }
    classify(net, out(output), global_average(net, y), batch_size, y.channels, num_classes);
}
