// Stage after stage: convolution, normalisation in place, again both, pooling.
#include <kernelblaster/kernels/network.cuh>

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size, int64_t image,
                               int64_t width1, int64_t width2, int64_t width3, int64_t num_classes) {
    const int64_t widths[3] = {width1, width2, width3};
    Network net{weights};
    Image y = image_of(x, batch_size, 3, image, image);
    for (const int64_t width : widths) {
        y = norm_layer(net, conv_layer(net, y, width, 3, 1, 1), Relu());
        y = norm_layer(net, conv_layer(net, y, width, 3, 1, 1), Relu());
        y = pool_layer(net, y, 2, 2, 0, MaxPool());
    }
    classify(net, out(output), global_average(net, y), batch_size, y.channels, num_classes);
}
