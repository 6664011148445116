// Three linear layers with a rectifier between each two: one tiled matrix product per layer.
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/workspace.cuh>

void launch_gpu_implementation(void* output, void* x, void* network_0_weight, void* network_0_bias,
                               void* network_2_weight, void* network_2_bias, void* network_4_weight,
                               void* network_4_bias, int64_t batch_size, int64_t input_size, int64_t layer_size1,
                               int64_t layer_size2, int64_t output_size) {
    Workspace workspace;
    scalar_t* hidden1 = workspace.take(batch_size * layer_size1);
    scalar_t* hidden2 = workspace.take(batch_size * layer_size2);
    linear(hidden1, in(x), in(network_0_weight), batch_size, input_size, layer_size1, BiasRelu{in(network_0_bias)});
    linear(hidden2, hidden1, in(network_2_weight), batch_size, layer_size1, layer_size2,
           BiasRelu{in(network_2_bias)});
    linear(out(output), hidden2, in(network_4_weight), batch_size, layer_size2, output_size,
           Bias{in(network_4_bias)});
}
