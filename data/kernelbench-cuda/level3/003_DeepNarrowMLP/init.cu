// A chain of linear layers with a rectifier between each two: one tiled matrix product per layer.
#include <kernelblaster/kernels/network.cuh>

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size, int64_t input_size,
                               int64_t layer_size, int64_t layers, int64_t output_size) {
    Network net{weights};
    const scalar_t* y = in(x);
    int64_t extent = input_size;
    for (int64_t layer = 0; layer < layers; ++layer, extent = layer_size) {
        y = linear_layer<BiasRelu>(net, y, batch_size, extent, layer_size);
    }
    classify(net, out(output), y, batch_size, extent, output_size);
}
