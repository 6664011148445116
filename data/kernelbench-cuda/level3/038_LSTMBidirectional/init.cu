// Layer by layer, both directions: a product for all inputs, a kernel per step; a linear layer takes the last step.
#include <kernelblaster/kernels/network.cuh>
#include <kernelblaster/kernels/recurrent.cuh>

void launch_gpu_implementation(void* output, void* x, void* h0, void* c0, void* const* weights, int64_t batch_size,
                               int64_t sequence_length, int64_t input_size, int64_t hidden_size, int64_t num_layers,
                               int64_t output_size) {
    Network net{weights};
    const Recurrent shape{{sequence_length, batch_size, true}, input_size, hidden_size, num_layers, 2};
    const RecurrentStates states{in(h0), in(c0)};
    const scalar_t* y = recurrent_layers(net.workspace, net.weights, in(x), shape, states, Lstm());

    // The last step of each sample is a row of a matrix.
    const int64_t width = 2 * hidden_size;
    net.weights += 4 * 2 * num_layers;
    const scalar_t *weight = net.weight(), *bias = net.weight();
    const Matrix last{y + (sequence_length - 1) * width, sequence_length * width, 1};
    matmul(out(output), last, Matrix{weight, 1, width}, Product{batch_size, output_size, width}, Bias{bias});
}
