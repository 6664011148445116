// Each branch for itself, and its channels copied to their place in the output.
#include <kernelblaster/kernels/network.cuh>

void launch_gpu_implementation(void* output, void* x, void* branch1x1_weight, void* branch1x1_bias,
                               void* branch3x3_0_weight, void* branch3x3_0_bias, void* branch3x3_1_weight,
                               void* branch3x3_1_bias, void* branch5x5_0_weight, void* branch5x5_0_bias,
                               void* branch5x5_1_weight, void* branch5x5_1_bias, void* branch_pool_1_weight,
                               void* branch_pool_1_bias, int64_t batch_size, int64_t in_channels, int64_t height,
                               int64_t width, int64_t out_1x1, int64_t reduce_3x3, int64_t out_3x3,
                               int64_t reduce_5x5, int64_t out_5x5, int64_t pool_proj) {
    Network net{nullptr};
    const Image image = image_of(x, batch_size, in_channels, height, width);
    const Image y = image_of(output, batch_size, out_1x1 + out_3x3 + out_5x5 + pool_proj, height, width);
    const auto layer = [&](Image from, void* weight, void* bias, int64_t channels, int64_t kernel) {
        return convolved(net, from, in(weight), channels, kernel, 1, kernel / 2, 1, Bias{in(bias)});
    };

    const Image reduced3 = layer(image, branch3x3_0_weight, branch3x3_0_bias, reduce_3x3, 1);
    const Image reduced5 = layer(image, branch5x5_0_weight, branch5x5_0_bias, reduce_5x5, 1);
    const Image pooled = pool_layer(net, image, 3, 1, 1, MaxPool());
    int64_t channel = place_channels(y, 0, layer(image, branch1x1_weight, branch1x1_bias, out_1x1, 1));
    channel = place_channels(y, channel, layer(reduced3, branch3x3_1_weight, branch3x3_1_bias, out_3x3, 3));
    channel = place_channels(y, channel, layer(reduced5, branch5x5_1_weight, branch5x5_1_bias, out_5x5, 5));
    place_channels(y, channel, layer(pooled, branch_pool_1_weight, branch_pool_1_bias, pool_proj, 1));
}
