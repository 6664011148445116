// Layers of transformers over (batch, tokens, width): each takes its weights from the network's, as they come.
#pragma once
#include <kernelblaster/kernels/attention.cuh>
#include <kernelblaster/kernels/network.cuh>

// A batch of sequences of vectors.
struct Tokens {
    int64_t batch, length, width;
    int64_t rows() const { return batch * length; }
    int64_t count() const { return rows() * width; }
};

// Adds a bias and an earlier tensor of the same shape.
struct BiasAdd {
    const scalar_t *bias, *other;
    __device__ float operator()(float sum, int64_t index, int64_t channel) const {
        return sum + to_float(bias[channel]) + to_float(other[index]);
    }
};

struct BiasGelu {
    const scalar_t* bias;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return gelu(sum + to_float(bias[channel]));
    }
};

// y = x weight^T + bias + other; takes weight and bias.
static scalar_t* linear_add(Network& net, const scalar_t* x, int64_t rows, int64_t in_features, int64_t out_features,
                            const scalar_t* other) {
    scalar_t* y = net.take(rows * out_features);
    const scalar_t* weight = net.weight();
    linear(y, x, weight, rows, in_features, out_features, BiasAdd{net.weight(), other});
    return y;
}

// Layer normalisation of every token into a new tensor; takes scale and shift.
static scalar_t* token_norm(Network& net, const scalar_t* x, int64_t rows, int64_t width) {
    scalar_t* y = net.take(rows * width);
    const scalar_t* scale = net.weight();
    layer_norm(y, x, rows, width, Affine{scale, net.weight()}, 1e-5f);
    return y;
}

// What each head of a token mixes from the others' values; rows of qkv hold q, k and v of all heads side by side.
static scalar_t* self_attention(Network& net, const scalar_t* qkv, Tokens t, int64_t heads, bool causal = false) {
    scalar_t* mixed = net.take(t.count());
    const int64_t size = t.width / heads, row = 3 * t.width, sample = t.length * row;
    const Attention shape{t.batch, heads, t.length, t.length, size, rsqrtf(static_cast<float>(size)), causal};
    attention(mixed, Heads{mixed, t.count() / t.batch, size, t.width}, Heads{qkv, sample, size, row},
              Heads{qkv + t.width, sample, size, row}, Heads{qkv + 2 * t.width, sample, size, row}, shape);
    return mixed;
}

// torch.nn.TransformerEncoderLayer, normalised after each sum: attention, then two linear layers with a rectifier.
// Weights and biases: q k v, output projection, first and second linear layer, first and second normalisation.
static scalar_t* encoder_layer(Network& net, const scalar_t* x, Tokens t, int64_t heads, int64_t hidden) {
    void* const* w = net.weights;
    net.weights += 12;
    scalar_t *qkv = net.take(3 * t.count()), *attended = net.take(t.count());
    scalar_t *wide = net.take(t.rows() * hidden), *y = net.take(t.count());

    linear(qkv, x, in(w[0]), t.rows(), t.width, 3 * t.width, Bias{in(w[1])});
    const scalar_t* mixed = self_attention(net, qkv, t, heads);
    linear(attended, mixed, in(w[2]), t.rows(), t.width, t.width, BiasAdd{in(w[3]), x});
    layer_norm(attended, attended, t.rows(), t.width, Affine{in(w[8]), in(w[9])}, 1e-5f);
    linear(wide, attended, in(w[4]), t.rows(), t.width, hidden, BiasRelu{in(w[5])});
    linear(y, wide, in(w[6]), t.rows(), hidden, t.width, BiasAdd{in(w[7]), attended});
    layer_norm(y, y, t.rows(), t.width, Affine{in(w[10]), in(w[11])}, 1e-5f);
    return y;
}

// The first token of each sample in front, learned and the same for all, before the others; `position` is added.
struct WithClassToken {
    const scalar_t *token, *rest, *position;
    int64_t length, width;
    __device__ float operator()(int64_t i) const {
        const int64_t column = i % width, place = i / width % length, sample = i / width / length;
        const float value =
            to_float(place == 0 ? token[column] : rest[(sample * (length - 1) + place - 1) * width + column]);
        return position != nullptr ? value + to_float(position[place * width + column]) : value;
    }
};
