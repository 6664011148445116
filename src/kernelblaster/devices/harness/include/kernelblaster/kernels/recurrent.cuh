// Recurrent layers: the products with the inputs of all steps at once, then one kernel per step.
#pragma once
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/workspace.cuh>

// The vectors of a batch of sequences, sample after sample or step after step.
struct Sequences {
    int64_t steps, batch;
    bool batch_first;
    int64_t count() const { return steps * batch; }
    int64_t at(int64_t step, int64_t sample) const { return batch_first ? sample * steps + step : step * batch + sample; }
    // Vectors from one sample of a step to the next.
    int64_t sample_stride() const { return batch_first ? steps : 1; }
};

// What a stack of layers computes with: states are (layers * directions, batch, hidden).
struct Recurrent {
    Sequences sequences;
    int64_t inputs, hidden, layers, directions;
};

// Weights of one direction of a layer, rows of all gates below each other, as torch.nn.LSTM and GRU have them.
struct Gates {
    const scalar_t *weight_ih, *weight_hh, *bias_ih, *bias_hh;
};

// One vector per sample: elements from one sample to the next.
struct States {
    const scalar_t* data;
    int64_t stride;
};

// The input's part of all gates, which cancels with the state's part, and is not rounded therefore.
struct Projected {
    const float* data;
    int64_t stride;
};

// Gates i, f, g, o, from what the input and the previous state give to each.
struct Lstm {
    static constexpr int GATES = 4;
    __device__ float operator()(const float* input, const float* state, float, float* cell) const {
        const float kept = sigmoid(input[1] + state[1]) * *cell;
        *cell = kept + sigmoid(input[0] + state[0]) * tanhf(input[2] + state[2]);
        return sigmoid(input[3] + state[3]) * tanhf(*cell);
    }
};

// Gates r, z, n. There is no cell.
struct Gru {
    static constexpr int GATES = 3;
    __device__ float operator()(const float* input, const float* state, float previous, float*) const {
        const float update = sigmoid(input[1] + state[1]);
        const float proposed = tanhf(input[2] + sigmoid(input[0] + state[0]) * state[2]);
        return (1.0f - update) * proposed + update * previous;
    }
};

// One step of one direction, a thread per sample and hidden unit.
template <typename Unit>
__global__ void recurrent_step_kernel(scalar_t* next, int64_t next_stride, float* cells, Projected projected,
                                      States previous, Gates gates, int64_t batch, int64_t hidden, Unit unit) {
    for (int64_t i = first_index(); i < batch * hidden; i += index_step()) {
        const int64_t sample = i / hidden, place = i % hidden;
        const scalar_t* state = previous.data + sample * previous.stride;
        float from_input[Unit::GATES], from_state[Unit::GATES];
        for (int gate = 0; gate < Unit::GATES; ++gate) {
            const int64_t row = gate * hidden + place;
            float sum = to_float(gates.bias_hh[row]);
            for (int64_t k = 0; k < hidden; ++k) sum += to_float(gates.weight_hh[row * hidden + k]) * to_float(state[k]);
            from_input[gate] = projected.data[sample * projected.stride + row];
            from_state[gate] = sum;
        }
        next[sample * next_stride + place] = from_float(unit(from_input, from_state, to_float(state[place]), cells + i));
    }
}

__global__ void load_cells_kernel(float* cells, const scalar_t* initial, int64_t count) {
    for (int64_t i = first_index(); i < count; i += index_step()) cells[i] = to_float(initial[i]);
}

__global__ void store_cells_kernel(scalar_t* last, const float* cells, int64_t count) {
    for (int64_t i = first_index(); i < count; i += index_step()) last[i] = from_float(cells[i]);
}

__global__ void store_states_kernel(scalar_t* last, States states, int64_t batch, int64_t hidden) {
    for (int64_t i = first_index(); i < batch * hidden; i += index_step()) {
        last[i] = states.data[i / hidden * states.stride + i % hidden];
    }
}

// Initial states of all layers, and where their last ones go. Cells belong to an Lstm; what is not wanted is null.
struct RecurrentStates {
    const scalar_t *hidden, *cell = nullptr;
    scalar_t *last_hidden = nullptr, *last_cell = nullptr;
};

// Runs all layers over x and returns the hidden states of the last one, (sequences, directions * hidden). They lie in
// `output` where one is given. `weights` are those of torch.nn.LSTM or GRU: per layer and direction four tensors.
template <typename Unit>
static const scalar_t* recurrent_layers(Workspace& workspace, void* const* weights, const scalar_t* x, Recurrent shape,
                                        RecurrentStates states, Unit unit, scalar_t* output = nullptr) {
    const Sequences rows = shape.sequences;
    const int64_t hidden = shape.hidden, width = shape.directions * hidden, lanes = Unit::GATES * hidden;
    const int64_t state_count = rows.batch * hidden;
    const unsigned blocks = blocks_for(state_count);
    float* projected = workspace.take_float(rows.count() * lanes);
    float* cells = workspace.take_float(state_count);

    for (int64_t layer = 0; layer < shape.layers; ++layer) {
        const int64_t inputs = layer == 0 ? shape.inputs : width;
        const bool last_layer = layer + 1 == shape.layers;
        scalar_t* y = last_layer && output != nullptr ? output : workspace.take(rows.count() * width);
        for (int64_t direction = 0; direction < shape.directions; ++direction, weights += 4) {
            const Gates gates{in(weights[0]), in(weights[1]), in(weights[2]), in(weights[3])};
            const int64_t at = (layer * shape.directions + direction) * state_count;
            linear(projected, x, gates.weight_ih, rows.count(), inputs, lanes, Bias{gates.bias_ih});
            if (states.cell != nullptr) load_cells_kernel<<<blocks, THREADS>>>(cells, states.cell + at, state_count);

            States previous{states.hidden + at, hidden};
            for (int64_t turn = 0; turn < rows.steps; ++turn) {
                const int64_t row = rows.at(direction == 0 ? turn : rows.steps - 1 - turn, 0);
                scalar_t* next = y + row * width + direction * hidden;
                const Projected input{projected + row * lanes, rows.sample_stride() * lanes};
                recurrent_step_kernel<<<blocks, THREADS>>>(next, rows.sample_stride() * width, cells, input, previous,
                                                           gates, rows.batch, hidden, unit);
                previous = {next, rows.sample_stride() * width};
            }
            if (states.last_hidden != nullptr) {
                store_states_kernel<<<blocks, THREADS>>>(states.last_hidden + at, previous, rows.batch, hidden);
            }
            if (states.last_cell != nullptr) {
                store_cells_kernel<<<blocks, THREADS>>>(states.last_cell + at, cells, state_count);
            }
            check(cudaGetLastError());
        }
        x = y;
    }
    return x;
}
