// Step after step: input and state side by side, their product and tanh; one product for all outputs.
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct SideBySide {
    const scalar_t *left, *right;
    int64_t left_width, right_width;
    __device__ float operator()(int64_t i) const {
        const int64_t width = left_width + right_width, row = i / width, column = i % width;
        return to_float(column < left_width ? left[row * left_width + column]
                                            : right[row * right_width + column - left_width]);
    }
};

struct BiasTanh {
    const scalar_t* bias;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return tanhf(sum + to_float(bias[channel]));
    }
};

void launch_gpu_implementation(void* output, void* x, void* h0, void* i2h_weight, void* i2h_bias, void* h2o_weight,
                               void* h2o_bias, int64_t sequence_length, int64_t batch_size, int64_t input_size,
                               int64_t hidden_size, int64_t output_size) {
    Workspace workspace;
    const int64_t width = input_size + hidden_size, state = batch_size * hidden_size;
    scalar_t* both = workspace.take(batch_size * width);
    scalar_t* hidden = workspace.take(sequence_length * state);
    for (int64_t step = 0; step < sequence_length; ++step) {
        const scalar_t* previous = step == 0 ? in(h0) : hidden + (step - 1) * state;
        const scalar_t* given = in(x) + step * batch_size * input_size;
        generate(both, batch_size * width, SideBySide{given, previous, input_size, hidden_size});
        linear(hidden + step * state, both, in(i2h_weight), batch_size, width, hidden_size, BiasTanh{in(i2h_bias)});
    }
    linear(out(output), hidden, in(h2o_weight), sequence_length * batch_size, hidden_size, output_size,
           Bias{in(h2o_bias)});
}
