// Layer by layer: a product for all inputs, a kernel per step; the last layer writes the output.
#include <kernelblaster/kernels/recurrent.cuh>

void launch_gpu_implementation(void* output, void* x, void* h0, void* const* weights, int64_t batch_size,
                               int64_t sequence_length, int64_t input_size, int64_t hidden_size, int64_t num_layers) {
    Workspace workspace;
    const Recurrent shape{{sequence_length, batch_size, false}, input_size, hidden_size, num_layers, 1};
    const RecurrentStates states{in(h0)};
    recurrent_layers(workspace, weights, in(x), shape, states, Gru(), out(output));
}
